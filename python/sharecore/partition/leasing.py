"""Log reads of a share partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore._core import ExpandedCache, LogAccess
from sharecore.storage import Reader, Slice

if TYPE_CHECKING:
    from sharecore.storage import Log


Acquired = tuple[int, int, int]
"""First offset, last offset, delivery count."""


class Leasing(LogAccess):
    """Read the records to acquire from one log.

    Args:
        log: the log.
        ready: called when a thread read completes; a retry then returns the records.
        expanded: caches expanded batches.

    Attributes:
        read_committed: whether to archive records of aborted transactions instead of delivering them.
        stored: the store to read directly; None while a thread reads or its result is cached.
    """

    __slots__ = ("_reader", "_stored", "log")

    def __init__(self, log: Log, ready: Callable[[], object], expanded: ExpandedCache) -> None:
        self.log = log
        self.expanded = expanded
        self.stored = self._stored = log.stored
        self._reader = Reader(log, ready, once=True)

    @property
    def reading(self) -> bool:
        """Whether a thread is reading; `ready` will be called."""
        return self._reader.is_reading

    @property
    def reading_bytes(self) -> int:
        """Approximate size of the current thread read."""
        return self._reader.reading_bytes

    @property
    def keeps(self) -> bool:
        """Whether the result of a thread read has not been taken yet."""
        return self._reader.keeps

    def forget(self) -> None:
        """Discard the result of the last thread read."""
        self._reader.forget()
        self._note_waits()

    def read(
        self, offset: int, max_bytes: int, max_records: int, at_least_one: bool, end: int
    ) -> Slice | None:
        """Return record batches before `end`; None while a thread reads them. A result is returned once."""
        try:
            return self._reader.read(
                offset, max_bytes, limit=end, at_least_one=at_least_one, max_records=max_records
            )
        finally:
            self._note_waits()

    def _note_waits(self) -> None:
        self.stored = self._stored if self._reader.has_not_waited else None

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return producer and first offset of each aborted transaction with records in `[first, end)`."""
        return self.log.aborted(first, end)
