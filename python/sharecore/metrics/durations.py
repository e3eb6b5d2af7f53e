"""Durations by buckets whose edges double: one index computation and one addition each."""

from __future__ import annotations

BUCKETS = 26
EDGES = (*(f"{2**i / 1e6:g}" for i in range(BUCKETS - 1)), "+Inf")
"""Upper edges in seconds: a microsecond, two, four, ... sixteen seconds, everything."""


class Durations:
    """Counts of durations, and their sum in nanoseconds."""

    __slots__ = ("buckets", "total_ns")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.total_ns = 0

    def add(self, ns: int) -> None:
        """One more."""
        self.total_ns += ns
        at = (ns // 1000).bit_length()
        self.buckets[at if at < BUCKETS else BUCKETS - 1] += 1
