"""Log reads on an event loop: cached records immediately, others through a thread."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from sharecore.errors import KafkaError
from sharecore.storage.log import ANY_RECORDS, ReadApart, ReadSpec, Slice

if TYPE_CHECKING:
    from sharecore.storage.log import Log


_ATTEMPTS_MAX = 3
"""After so many reads in vain, the thread locates the records, too: memory is too short for their index."""
_NOWHERE = -1
_HEAD = struct.Struct(">qi")
"""Start of a record batch: base offset and remaining length."""


class Reader:
    """Read a log without blocking the event loop.

    The result of a thread read is cached until `forget`, or until a thread reads elsewhere.

    Args:
        log: the log.
        ready: called when a thread read completes; a retry then returns the records.
        once: whether a result is dropped once it is returned.

    Attributes:
        reading_bytes: approximate size of the last thread read.
    """

    __slots__ = (
        "_attempts",
        "_found",
        "_is_reading",
        "_log",
        "_max_bytes",
        "_max_records",
        "_offset",
        "_once",
        "_ready",
        "reading_bytes",
    )

    def __init__(self, log: Log, ready: Callable[[], object], *, once: bool = False) -> None:
        self._log = log
        self._ready = ready
        self._once = once
        self._is_reading = False
        self._attempts = 0
        self._offset = _NOWHERE
        self._found: ReadApart = None
        self._max_bytes = self._max_records = self.reading_bytes = 0

    @property
    def is_reading(self) -> bool:
        """Whether a thread is reading; `ready` will be called."""
        return self._is_reading

    @property
    def keeps(self) -> bool:
        """Whether a thread's result is cached."""
        return self._found is not None

    @property
    def has_not_waited(self) -> bool:
        """Whether no thread read is pending or waiting to be picked up."""
        return self._offset == _NOWHERE

    def forget(self) -> None:
        """Drop the result of a thread read."""
        if not self._is_reading:
            self._offset, self._found, self._attempts = _NOWHERE, None, 0

    def read(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice | None:
        """Read as `Log.read` does; None while a thread reads, and `ready` will be called.

        It may return only as much as the first request asked for.
        """
        log, again = self._log, offset == self._offset and not self._is_reading
        if again and self._found is not None:
            kept = self._found
            if self._once or isinstance(kept, KafkaError):
                self.forget()
            if isinstance(kept, KafkaError):
                raise kept
            return _first(kept, offset, max_bytes, **spec)
        found = log.read_cached(offset, max_bytes, **spec)
        if again and found is None:
            # the request may be larger than the thread's
            max_bytes = min(max_bytes, self._max_bytes)
            spec["max_records"] = min(spec.get("max_records", ANY_RECORDS), self._max_records)
            found = log.read_cached(offset, max_bytes, **spec)
        if found is not None:
            if again:
                self.forget()
            return found
        if not self._is_reading:
            self._attempts = self._attempts + 1 if again else 1
            self._is_reading, self._offset, self._found = True, offset, None
            self._max_bytes, self._max_records = max_bytes, spec.get("max_records", ANY_RECORDS)
            whole = self._attempts > _ATTEMPTS_MAX
            self.reading_bytes = log.read_apart(offset, max_bytes, self._ended, whole=whole, **spec)
        return None

    def _ended(self, found: ReadApart) -> None:
        self._is_reading, self._found = False, found
        self._ready()


def _first(
    found: Slice,
    offset: int,
    max_bytes: int,
    limit: int | None = None,
    at_least_one: bool = True,
    max_records: int = ANY_RECORDS,
) -> Slice:
    """Return the requested part of the records found."""
    size = count = 0
    following = offset
    for _, last in found.batches:
        length = _HEAD.size + _HEAD.unpack_from(found.records, size)[1]
        fits = size + length <= max_bytes and following < offset + max_records
        if (limit is not None and last >= limit) or not (fits or (at_least_one and not count)):
            break
        size, count, following = size + length, count + 1, last + 1
    return found if count == len(found.batches) else Slice(found.records[:size], found.batches[:count])
