"""Records whose dead-letter record is due."""

from __future__ import annotations

from typing import NamedTuple

CAUSES = ("delivery limit", "rejected", "expired")
"""Causes of dead letters, by the engine's numbers."""
_DELIVERY_LIMIT = 0


class DeadLetter(NamedTuple):
    """Adjacent records of a share partition, as reported by the engine.

    Args:
        first, last: offsets, both included.
        delivery_count: their delivery count.
        why: an index into `CAUSES`.
    """

    first: int
    last: int
    delivery_count: int
    why: int

    @property
    def cause(self) -> str:
        """The cause, for people."""
        if self.why == _DELIVERY_LIMIT:
            return f"delivered {self.delivery_count} times"
        return CAUSES[self.why]


def spans(written: list[DeadLetter], waiting: list[DeadLetter]) -> list[tuple[int, int]]:
    """Return the offset ranges of written letters: one span, unless a waiting letter is in between."""
    first, last = min(each.first for each in written), max(each.last for each in written)
    if any(each.first <= last and each.last >= first for each in waiting):
        return sorted((each.first, each.last) for each in written)
    return [(first, last)]
