"""Current contents of a partition: the last value of each key, with transactions decided."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sharecore.coordinator_log.topic_log import Record, TopicLog
from sharecore.storage import ScannedBatch

_STEP_RECORDS = 2000


class Compaction:
    """Read a partition from its start to its high watermark, in steps.

    Attributes:
        end: the next offset to read.
    """

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._batches: Iterator[ScannedBatch] = iter(())
        self._values: dict[bytes, bytes] = {}
        self._open: dict[int, list[tuple[int, bytes, bytes | None]]] = {}
        self._offsets: dict[bytes, int] = {}
        self.end = log.start_offset

    def read_some(self) -> bool:
        """Read more; return False when all durable records have been read."""
        count = 0
        while count < _STEP_RECORDS:
            batch = next(self._batches, None)
            if batch is None:
                if self.end >= self._log.high_watermark:
                    return False
                self._batches = self._log.scan_batches(self.end)
                continue
            self._take(batch)
            count += len(batch.records)
            self.end = batch.records[-1][0] + 1
        return True

    def redundant_before(self, stable: int, under_way: Collection[bytes]) -> int:
        """Return the offset up to which records may be deleted once `live` is appended again.

        A value rewritten behind an open transaction's value would replace it on replay. So the writes of open
        transactions stay where they are, and so do the values that these may replace.

        Args:
            stable: the offset of the first record of an open transaction.
            under_way: keys that open transactions have written since then.
        """
        keys = {key for pending in self._open.values() for _, key, _ in pending}.union(under_way)
        needed = (self._offsets[key] for key in keys if key in self._values)
        return min(self.end, stable, *needed)

    def live(self, before: int) -> Iterator[Record]:
        """Return keys last written before an offset, with their values, in order of the writes."""
        return ((key, value) for key, value in self._values.items() if self._offsets[key] < before)

    def _take(self, batch: ScannedBatch) -> None:
        if batch.is_control:
            pending = self._open.pop(batch.producer_id, [])
            for offset, key, value in pending if batch.is_commit else ():
                # a write outside of the transaction since then is newer
                if self._offsets.get(key, -1) < offset:
                    self._put(offset, key, value)
            return
        for offset, _, record_key, value in batch.records:
            key = record_key or b""
            if batch.producer_id < 0:
                self._put(offset, key, value)
            else:
                self._open.setdefault(batch.producer_id, []).append((offset, key, value))

    def _put(self, offset: int, key: bytes, value: bytes | None) -> None:
        self._values.pop(key, None)
        self._offsets[key] = offset
        if value is not None:
            self._values[key] = value
