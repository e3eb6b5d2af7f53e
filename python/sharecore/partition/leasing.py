"""Where a share partition reads what it leases."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore._core import LogAccess
from sharecore.storage import Reader, Slice

if TYPE_CHECKING:
    from sharecore.storage import Log


Acquired = tuple[int, int, int]
"""First offset, last offset, delivery count."""


class Leasing(LogAccess):
    """How the records of one log are leased.

    Args:
        log: the log.
        ready: called when what was not in memory is there, so that trying again gets it.

    Attributes:
        read_committed: whether records of aborted transactions are archived instead.
        stored: where the log may be read directly; None while a thread reads, or what it has read is kept.
    """

    __slots__ = ("_reader", "_stored", "log")

    def __init__(self, log: Log, ready: Callable[[], object]) -> None:
        self.log = log
        self.stored = self._stored = log.stored
        self._reader = Reader(log, ready, once=True)

    @property
    def reading(self) -> bool:
        """Whether a thread reads; `ready` will be called."""
        return self._reader.is_reading

    @property
    def reading_bytes(self) -> int:
        """About how many bytes it reads."""
        return self._reader.reading_bytes

    @property
    def keeps(self) -> bool:
        """Whether what a thread has read has not been taken."""
        return self._reader.keeps

    def forget(self) -> None:
        """Keep nothing of what a thread has read."""
        self._reader.forget()
        self._note_waits()

    def read(
        self, offset: int, max_bytes: int, max_records: int, at_least_one: bool, end: int
    ) -> Slice | None:
        """Record batches before `end`; None while a thread reads them. What it has read is given once."""
        try:
            return self._reader.read(
                offset, max_bytes, limit=end, at_least_one=at_least_one, max_records=max_records
            )
        finally:
            self._note_waits()

    def _note_waits(self) -> None:
        self.stored = self._stored if self._reader.has_not_waited else None

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return producer and first offset of aborted transactions with records in `[first, end)`."""
        return self.log.aborted(first, end)
