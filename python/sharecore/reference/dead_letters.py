"""The dead letters that are due and that nobody has taken yet (KIP-1191)."""

from __future__ import annotations


class DeadLetters:
    """Records by offset, in the order in which their letters became due."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, bool]] = []

    def add(self, offset: int, delivery_count: int, *, rejected: bool) -> None:
        """The letter of a record is due: it was rejected, or came to its delivery limit."""
        self._due.append((offset, delivery_count, rejected))

    def take(self) -> list[tuple[int, int, int, bool]]:
        """(first, last, delivery_count, rejected) of what is due; equal neighbours that follow are joined."""
        joined: list[tuple[int, int, int, bool]] = []
        for offset, count, rejected in self._due:
            if joined and joined[-1][1] + 1 == offset and joined[-1][2:] == (count, rejected):
                joined[-1] = (joined[-1][0], offset, count, rejected)
            else:
                joined.append((offset, offset, count, rejected))
        self._due.clear()
        return joined
