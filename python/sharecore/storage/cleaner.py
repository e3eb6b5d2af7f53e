"""Log compaction passes, as the broker requests them."""

from __future__ import annotations

from typing import NamedTuple

from sharecore import _core
from sharecore.storage.storage import Storage
from sharecore.storage.store_log import StoreLog


class Dirt(NamedTuple):
    """How much of a log can be compacted.

    Args:
        clean_bytes: bytes that have been compacted.
        dirty_bytes: bytes not compacted yet that can be now.
        dirty_since_ms: time of the first of them.
        active_bytes: bytes in the active journal segment, which wait until it is rolled.
        active_since_ms: time of the first of them.
    """

    clean_bytes: int
    dirty_bytes: int
    dirty_since_ms: int | None
    active_bytes: int
    active_since_ms: int | None


class Cleaned(NamedTuple):
    """The result of a pass.

    Args:
        end_offset: first offset not covered.
        keys: distinct keys since the previous pass.
        keys_bytes: memory for these keys.
        is_partial: whether the keys exceeded the memory, so that another pass is needed.
        first_unreadable: first offset of the first unreadable batch; such batches stay as they are.
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
    """Resources of a pass.

    Args:
        keys_bytes: memory for keys, 24 bytes each.
        keys_load: the fraction of it to fill.
        read_bytes: read at a time.
        bytes_per_second: read and written.
    """

    keys_bytes: int
    keys_load: float
    read_bytes: int
    bytes_per_second: float


class LogCleaner:
    """Compacts logs of a storage. `dirt` and `clean` read files: call them in a thread that may block."""

    def __init__(self, storage: Storage) -> None:
        self._core = _core.LogCleaner(storage.store)

    def dirt(self, log: StoreLog, newest_ms: int) -> Dirt:
        """Return how much can be compacted, excluding segments with records newer than `newest_ms`.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR if the disk cannot be read.
        """
        return Dirt(*self._core.dirt(log.log_id, newest_ms))

    def clean(
        self, log: StoreLog, *, now_ms: int, newest_ms: int, delete_retention_ms: int, limits: Limits
    ) -> Cleaned | None:
        """Compact a log once; return None if there was nothing to do.

        Raises:
            KafkaError: as `dirt`, and CORRUPT_MESSAGE if a batch cannot be read. The log is unchanged.
        """
        times_ms = now_ms, newest_ms, delete_retention_ms
        cleaned = self._core.clean(log.log_id, times_ms=times_ms, limits=limits)
        return None if cleaned is None else Cleaned(*cleaned)

    def roll(self) -> None:
        """Roll the active journal segment, so that its records can be compacted."""
        self._core.roll()
