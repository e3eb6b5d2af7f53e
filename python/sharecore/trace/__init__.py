"""Replays traces of share-partition operations through an engine: `python -m sharecore.trace --help`."""

from __future__ import annotations
