"""Ranges of offsets that carry a number."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

Range = tuple[int, int, int]
"""(first offset, last offset, number)"""


class Ranges:
    """Ascending ranges without overlaps; neighbors with the same number are merged.

    Args:
        ranges: put in one after the other.
    """

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[Iterable[int]] = ()) -> None:
        self._ranges: list[Range] = []
        for first, last, number in ranges:
            self.put(first, last, number)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and self._ranges == other._ranges

    def __repr__(self) -> str:
        return f"Ranges({self._ranges})"

    @property
    def offsets(self) -> int:
        """How many offsets there are."""
        return sum(last - first + 1 for first, last, _ in self._ranges)

    def overlap(self, first: int, last: int) -> list[Range]:
        """Return the parts within `first` to `last`."""
        found = []
        at = self._from(first)
        while at < len(self._ranges) and self._ranges[at][0] <= last:
            low, high, number = self._ranges[at]
            found.append((max(low, first), min(high, last), number))
            at += 1
        return found

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the gaps within `first` to `last`."""
        gaps = []
        for low, high, _ in self.overlap(first, last):
            if first < low:
                gaps.append((first, low - 1))
            first = high + 1
        if first <= last:
            gaps.append((first, last))
        return gaps

    def cut(self, first: int, last: int) -> None:
        """Remove all offsets from `first` to `last`."""
        at = end = self._from(first)
        left: list[Range] = []
        while end < len(self._ranges) and self._ranges[end][0] <= last:
            low, high, number = self._ranges[end]
            if low < first:
                left.append((low, first - 1, number))
            if high > last:
                left.append((last + 1, high, number))
            end += 1
        self._ranges[at:end] = left

    def put(self, first: int, last: int, number: int) -> None:
        """Insert a range over existing ones."""
        self.cut(first, last)
        at = self._from(first)
        if at > 0 and self._ranges[at - 1][1] == first - 1 and self._ranges[at - 1][2] == number:
            at -= 1
            first = self._ranges.pop(at)[0]
        if at < len(self._ranges) and self._ranges[at][0] == last + 1 and self._ranges[at][2] == number:
            last = self._ranges.pop(at)[1]
        self._ranges.insert(at, (first, last, number))

    def _from(self, first: int) -> int:
        """Return the index of the first range that ends at `first` or later."""
        return bisect_left(self._ranges, first, key=lambda each: each[1])


def split(ranges: Ranges, portions: int) -> Iterator[list[Range]]:
    """Split ranges into non-empty portions whose sizes differ by one offset at most."""
    total = ranges.offsets
    pending = list(reversed(list(ranges)))
    for number in range(portions):
        portion: list[Range] = []
        left = total * (number + 1) // portions - total * number // portions
        while left:
            first, last, tag = pending.pop()
            to = min(last, first + left - 1)
            portion.append((first, to, tag))
            left -= to - first + 1
            if to < last:
                pending.append((to + 1, last, tag))
        if portion:
            yield portion
