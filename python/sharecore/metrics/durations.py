"""Duration buckets at powers of two of a second: one index computation and one addition each."""

from __future__ import annotations

BUCKETS = 26
FIRST_EXPONENT = -20
EDGES = (*(repr(2.0 ** (FIRST_EXPONENT + i)) for i in range(BUCKETS - 1)), "+Inf")
"""Upper bounds in seconds: about one microsecond, two, four, ... sixteen seconds, infinity."""
_UNITS = round(2.0 ** (30 - FIRST_EXPONENT) / 1e9)
"""Units of 2**-30 of the first bound per nanosecond."""


class Durations:
    """Duration counts, and their sum in nanoseconds."""

    __slots__ = ("buckets", "total_ns")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.total_ns = 0

    def add(self, ns: int) -> None:
        """Add a duration."""
        self.total_ns += ns
        at = (ns * _UNITS >> 30).bit_length()
        self.buckets[at if at < BUCKETS else BUCKETS - 1] += 1
