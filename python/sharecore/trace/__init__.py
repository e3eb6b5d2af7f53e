"""Replay of share-partition operation traces through an engine: `python -m sharecore.trace --help`."""

from __future__ import annotations
