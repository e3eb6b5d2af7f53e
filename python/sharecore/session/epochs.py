"""Epochs that mean something of their own in a session."""

from __future__ import annotations

INITIAL_EPOCH = 0
"""Of a request that opens a session."""

FINAL_EPOCH = -1
"""Of a request that ends one."""
