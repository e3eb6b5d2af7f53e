"""Reading a log on an event loop: at once what is in memory, a little later what lies on the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore.storage.log import ANY_RECORDS, Slice

if TYPE_CHECKING:
    from sharecore.storage.log import Log


class Reader:
    """Reads a log without keeping the event loop waiting for the disk.

    Args:
        log: the log.
        ready: called when what was not in memory is there, so that reading again gets it.
    """

    __slots__ = ("_log", "_max_bytes", "_max_records", "_offset", "_ready", "_warming")

    def __init__(self, log: Log, ready: Callable[[], object]) -> None:
        self._log = log
        self._ready = ready
        self._warming = False
        self._offset = -1
        self._max_bytes = self._max_records = 0

    @property
    def warming(self) -> bool:
        """Whether a thread is reading from the disk; `ready` will be called."""
        return self._warming

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ANY_RECORDS,
    ) -> Slice | None:
        """As `Log.read`; None while a thread reads it from the disk, and `ready` will be called.

        Asked for more than that was, it may give no more than that.
        """
        log = self._log
        found = log.read_cached(
            offset, max_bytes, limit=limit, at_least_one=at_least_one, max_records=max_records
        )
        if self._warming:
            return found
        if found is not None:
            self._offset = -1
            return found
        if offset == self._offset:
            # it was in memory a moment ago, or the file system does not tell: no third attempt
            self._offset = -1
            return log.read(
                offset,
                min(max_bytes, self._max_bytes),
                limit=limit,
                at_least_one=at_least_one,
                max_records=min(max_records, self._max_records),
            )
        self._warming, self._offset = True, offset
        self._max_bytes, self._max_records = max_bytes, max_records
        log.warm(offset, max_bytes, self._warm, limit=limit, max_records=max_records)
        return None

    def _warm(self) -> None:
        self._warming = False
        self._ready()
