"""Batch jobs over share groups, run on Spark by `sharecore spark`; need the extra `sharecore[spark]`."""

from __future__ import annotations
