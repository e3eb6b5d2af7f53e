"""One partition of a coordinator's topic: appended to, and rewritten when most of it is out of date."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence

from sharecore.clock import Clock
from sharecore.coordinator_log.compaction import Compaction
from sharecore.coordinator_log.timers import Timers
from sharecore.coordinator_log.topic_log import Done, Producer, Record, TopicLog, settle
from sharecore.errors import KafkaError

logger = logging.getLogger(__name__)

BATCH_BYTES = 512 * 1024
"""About how large a batch becomes."""

COMPACT_RECORDS = 20_000
"""Records of a partition before it is worth a look how many of them still count."""

_GROWTH = 3
_RETRY_S = 1.0


class PartitionLog:
    """Appends, and keeps the partition in proportion to what it stands for.

    Compaction reads what is durable a little at a time, appends what still counts, and deletes what was
    read. What fails takes along what is behind it, so that nothing is deleted that was not written again.

    Args:
        log: the partition.
        compact_records: see `COMPACT_RECORDS`.
    """

    def __init__(
        self, log: TopicLog, clock: Clock, timers: Timers, *, compact_records: int = COMPACT_RECORDS
    ) -> None:
        self.log = log
        self._clock = clock
        self._timers = timers
        self._least = self._limit = compact_records
        self._compaction: Compaction | None = None
        self._under_way: Counter[bytes] = Counter()
        self._transactional = 0

    def append(
        self, records: Sequence[Record], waiting: Sequence[Done], producer: Producer | None = None
    ) -> None:
        """Appends records; those who wait are told when all of them are durable."""
        if not records:
            settle(waiting, None)
            return
        try:
            tickets = [
                self.log.append_local(some, now_ms=self._clock.now_ms(), producer=producer).ticket
                for some in _batches(records)
            ]
        except KafkaError as error:
            settle(waiting, error)
            return
        self._count(records, producer, 1)

        def ended(error: KafkaError | None) -> None:
            self._count(records, producer, -1)
            settle(waiting, error)

        tickets[-1].add_done_callback(lambda ticket: ended(ticket.error))
        if self._compaction is None and self.log.end_offset - self.log.start_offset > self._limit:
            self._compaction = Compaction(self.log)
            self._timers.call_soon(self._compact)

    def _count(self, records: Sequence[Record], producer: Producer | None, by: int) -> None:
        if producer is not None:
            self._transactional += by
            return
        for key, _ in records:
            self._under_way[key] += by
            if not self._under_way[key]:
                del self._under_way[key]

    def _compact(self) -> None:
        compaction = self._compaction
        assert compaction is not None
        if compaction.read_some():
            self._timers.call_soon(self._compact)
            return
        # an older value written behind one that a transaction may yet undo would win over it
        if self._transactional or self.log.last_stable_offset < self.log.high_watermark:
            self._timers.call_later(_RETRY_S, self._compact)
            return
        self._compaction = None
        live = [(key, value) for key, value in compaction.live() if key not in self._under_way]
        try:
            for some in _batches(live):
                self.log.append_local(some, now_ms=self._clock.now_ms())
            self.log.delete_records(compaction.end)
        except KafkaError as error:
            logger.warning("%s-%d is not compacted now: %s", self.log.topic, self.log.index, error)
        self._limit = max(self._least, _GROWTH * (self.log.end_offset - compaction.end))


def _batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cuts records into batches that the log takes."""
    first = size = 0
    for index, (key, value) in enumerate(records):
        length = len(key) + len(value or b"")
        if size and size + length > BATCH_BYTES:
            yield records[first:index]
            first, size = index, 0
        size += length
    if first < len(records):
        yield records[first:]
