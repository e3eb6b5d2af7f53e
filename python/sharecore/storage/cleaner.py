"""Passes of log compaction, as the broker asks for them."""

from __future__ import annotations

from typing import NamedTuple

from sharecore import _core
from sharecore.storage.storage import Storage
from sharecore.storage.store_log import StoreLog


class Dirt(NamedTuple):
    """What there is to compact in a log.

    Args:
        clean_bytes: bytes that have been compacted.
        dirty_bytes: bytes that have not, and may be now.
        dirty_since_ms: time of the first of them.
        active_bytes: bytes in the journal segment that is being written; they wait until it is given up.
        active_since_ms: time of the first of them.
    """

    clean_bytes: int
    dirty_bytes: int
    dirty_since_ms: int | None
    active_bytes: int
    active_since_ms: int | None


class Cleaned(NamedTuple):
    """What a pass did.

    Args:
        end_offset: first offset that it did not see.
        keys: different keys since the pass before.
        keys_bytes: memory that they took.
        is_partial: whether there were more keys than memory for them, so that another pass goes on.
        first_unreadable: first offset of the first batch whose records nobody can read; such batches stay as
            they are.
    """

    end_offset: int
    records_read: int
    records_kept: int
    bytes_before: int
    bytes_after: int
    keys: int
    keys_bytes: int
    is_partial: bool
    first_unreadable: int | None = None


class Limits(NamedTuple):
    """What a pass may use.

    Args:
        keys_bytes: memory for keys, 24 bytes each.
        keys_load: the share of it that is filled.
        read_bytes: read at a time.
        bytes_per_second: read and written.
    """

    keys_bytes: int
    keys_load: float
    read_bytes: int
    bytes_per_second: float


class LogCleaner:
    """Compacts logs of a storage. `dirt` and `clean` read files: calls for a thread that may wait."""

    def __init__(self, storage: Storage) -> None:
        self._core = _core.LogCleaner(storage.store)

    def dirt(self, log: StoreLog, newest_ms: int) -> Dirt:
        """Return what there is to compact, segments with records newer than `newest_ms` left out.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR when the disk cannot be read.
        """
        return Dirt(*self._core.dirt(log.log_id, newest_ms))

    def clean(
        self, log: StoreLog, *, now_ms: int, newest_ms: int, delete_retention_ms: int, limits: Limits
    ) -> Cleaned | None:
        """One pass; None when there was nothing to do.

        Raises:
            KafkaError: as `dirt`, and CORRUPT_MESSAGE when a batch cannot be read. The log is as it was.
        """
        times_ms = now_ms, newest_ms, delete_retention_ms
        cleaned = self._core.clean(log.log_id, times_ms=times_ms, limits=limits)
        return None if cleaned is None else Cleaned(*cleaned)

    def roll(self) -> None:
        """Give up the journal segment that is being written, so that its records may be compacted."""
        self._core.roll()
