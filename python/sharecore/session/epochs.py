"""Special session epochs."""

from __future__ import annotations

INITIAL_EPOCH = 0
"""Epoch of a request that opens a session."""

FINAL_EPOCH = -1
"""Epoch of a request that closes a session."""
