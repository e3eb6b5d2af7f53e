"""Records whose dead letter is due."""

from __future__ import annotations

from typing import NamedTuple

CAUSES = ("delivery limit", "rejected", "expired")
"""Why records are given up, by the engine's numbers."""
_DELIVERY_LIMIT = 0


class DeadLetter(NamedTuple):
    """Neighbouring records of a share partition, as the engine names them.

    Args:
        first, last: offsets, both included.
        delivery_count: how often they were delivered.
        why: a number of `CAUSES`.
    """

    first: int
    last: int
    delivery_count: int
    why: int

    @property
    def cause(self) -> str:
        """Why they were given up, for a person."""
        if self.why == _DELIVERY_LIMIT:
            return f"delivered {self.delivery_count} times"
        return CAUSES[self.why]


def spans(written: list[DeadLetter], waiting: list[DeadLetter]) -> list[tuple[int, int]]:
    """First and last offset of what is written: one span, unless something that waits lies in it."""
    first, last = min(each.first for each in written), max(each.last for each in written)
    if any(each.first <= last and each.last >= first for each in waiting):
        return sorted((each.first, each.last) for each in written)
    return [(first, last)]
