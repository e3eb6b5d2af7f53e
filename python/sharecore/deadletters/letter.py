"""Records whose dead letter is due."""

from __future__ import annotations

from typing import NamedTuple


class DeadLetter(NamedTuple):
    """Neighbouring records of a share partition, as the engine names them.

    Args:
        first, last: offsets, both included.
        delivery_count: how often they were delivered.
        rejected: whether a member rejected them, rather than that they came to their delivery limit.
    """

    first: int
    last: int
    delivery_count: int
    rejected: bool

    @property
    def cause(self) -> str:
        """Why they were given up, for a person."""
        return "rejected" if self.rejected else f"delivered {self.delivery_count} times"


def spans(written: list[DeadLetter], waiting: list[DeadLetter]) -> list[tuple[int, int]]:
    """First and last offset of what is written: one span, unless something that waits lies in it."""
    first, last = min(each.first for each in written), max(each.last for each in written)
    if any(each.first <= last and each.last >= first for each in waiting):
        return sorted((each.first, each.last) for each in written)
    return [(first, last)]
