"""Reading a log on an event loop: at once what is in memory, a little later what lies on the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore.storage.log import ANY_RECORDS, Slice

if TYPE_CHECKING:
    from sharecore.storage.log import Log


_ATTEMPTS_MAX = 3
"""Of a thread at the same records, before the event loop waits for the disk."""


class Reader:
    """Reads a log without keeping the event loop waiting for the disk.

    Args:
        log: the log.
        ready: called when what was not in memory is there, so that reading again gets it.
    """

    __slots__ = ("_attempts", "_log", "_max_bytes", "_max_records", "_offset", "_ready", "_warming")

    def __init__(self, log: Log, ready: Callable[[], object]) -> None:
        self._log = log
        self._ready = ready
        self._warming = False
        self._attempts = 0
        self._offset = -1
        self._max_bytes = self._max_records = 0

    @property
    def warming(self) -> bool:
        """Whether a thread is reading from the disk; `ready` will be called."""
        return self._warming

    @property
    def has_not_waited(self) -> bool:
        """Whether nothing is read from the disk, or was for a read that has not come again."""
        return self._offset < 0

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
            # more may be asked for now than the thread has read
            max_bytes, max_records = min(max_bytes, self._max_bytes), min(max_records, self._max_records)
            found = log.read_cached(
                offset, max_bytes, limit=limit, at_least_one=at_least_one, max_records=max_records
            )
            if found is None and self._attempts >= _ATTEMPTS_MAX:
                # the file system does not tell what is in memory, or memory is too short to keep it
                found = log.read(
                    offset, max_bytes, limit=limit, at_least_one=at_least_one, max_records=max_records
                )
            if found is not None:
                self._offset = -1
                return found
        else:
            self._attempts = 0
        self._attempts += 1
        self._warming, self._offset = True, offset
        self._max_bytes, self._max_records = max_bytes, max_records
        log.warm(offset, max_bytes, self._warm, limit=limit, max_records=max_records)
        return None

    def _warm(self) -> None:
        self._warming = False
        self._ready()
