"""The dead letters that are due and not taken yet (KIP-1191)."""

from __future__ import annotations

DELIVERY_LIMIT, REJECTED, EXPIRED = range(3)
"""The cause of a dead letter."""


class DeadLetters:
    """Records by offset, in the order in which their dead letters became due."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, int]] = []

    def add(self, offset: int, delivery_count: int, cause: int) -> None:
        """Record that a record's dead letter is due."""
        self._due.append((offset, delivery_count, cause))

    def take(self) -> list[tuple[int, int, int, int]]:
        """Take the due dead letters as (first, last, delivery_count, cause); equal neighbors are merged."""
        joined: list[tuple[int, int, int, int]] = []
        for offset, count, cause in self._due:
            if joined and joined[-1][1] + 1 == offset and joined[-1][2:] == (count, cause):
                joined[-1] = (joined[-1][0], offset, count, cause)
            else:
                joined.append((offset, offset, count, cause))
        self._due.clear()
        return joined
