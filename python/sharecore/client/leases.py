"""A member that acquires offsets and leaves reading the records to others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from sharecore._core import Record, damaged_batches
from sharecore.client.arguments import check_timeout, read_max_records
from sharecore.client.consumer import ASKS_MS_MIN
from sharecore.client.errors import CorruptRecords
from sharecore.client.fetching.batch import Part
from sharecore.client.fetching.buffer import Fetched, done_by
from sharecore.client.fetching.host import Host, Source
from sharecore.client.fetching.lease import _HELD_BYTE, AcknowledgeType, Lease
from sharecore.client.keeping import KeepingConsumer
from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.protocol.received import ShareFetchPartitionData

_HELD_RUN = re.compile(re.escape(_HELD_BYTE) + rb"+")


class Leased(NamedTuple):
    """Neighboring offsets of one delivery, held under one lease.

    `deliveries` is the delivery count, `at` the position of the first offset in the lease.
    """

    lease: CountedLease
    first: int
    last: int
    deliveries: int
    at: int

    def within(self, first: int, last: int) -> Leased:
        """Return a sub-range of these offsets."""
        return self._replace(first=first, last=last, at=self.at + first - self.first)

    def part(self, first: int, last: int) -> Part:
        """Return the part of the lease for a sub-range of offsets."""
        return Part(self.lease, self.at + first - self.first, self.at + last - self.first + 1)


class CountedLease(Lease):
    """A lease that also knows its delivery counts, and the average size of its records."""

    __slots__ = ("acquired", "record_bytes")

    def __init__(
        self,
        topic: str,
        key: TopicIdPartition,
        acquired: Iterable[tuple[int, int, int]],
        deadline_ms: int,
        owner: Source,
        size: int,
    ) -> None:
        self.acquired = tuple(acquired)
        super().__init__(topic, key, self.acquired, deadline_ms, owner)
        self.record_bytes = size / max(1, self.open)

    def held(self, low: int, high: int) -> Iterator[Leased]:
        """Yield the held parts of positions `low` to `high`."""
        base = 0
        for first, last, count in self.acquired:
            size = last - first + 1
            from_, to = max(low, base), min(high, base + size)
            for run in _HELD_RUN.finditer(self.states, from_, max(from_, to)):
                at = run.start()
                yield Leased(self, first + at - base, first + run.end() - 1 - base, count, at)
            base += size


class _Bare(Fetched):
    """A lease without its records."""

    def part(self, count: int) -> Part:
        return Part(self.lease, self.taken, self.taken + count)


def _take_in(key: TopicIdPartition, answer: ShareFetchPartitionData, link: Source, host: Host) -> int:
    """Deliver acquired offsets; reject those that are visibly damaged. Return the number of offsets.

    Raises:
        KafkaError: CORRUPT_MESSAGE: the acquired ranges are invalid.
    """
    topic = host.cluster.topics[key.topic_id].name
    acquired = [(first, last, count) for first, last, count in answer.acquired_records]
    edges = [edge for first, last, _ in acquired for edge in (first, last)]
    if edges != sorted(edges):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{topic}-{key.partition}: acquired ranges are not ascending"
        )
    records = answer.records or b""
    lease = CountedLease(topic, key, acquired, host.now_ms() + host.lock_ms, link, len(records))
    link.leases.add(lease)
    damaged = damaged_batches(records, [(first, last) for first, last, _ in acquired])
    for first, last, _ in damaged:
        for from_, to, _ in acquired:
            if from_ <= last and first <= to:
                low, high = lease.positions(max(first, from_), min(last, to))
                link.mark(lease, low, high, AcknowledgeType.REJECT)
    if damaged:
        ranges = [(first, last) for first, last, _ in damaged]
        host.fail(CorruptRecords(topic, key.partition, ranges, damaged[0][2]), False)
    size = len(lease.states)
    # a range is all that `Fetched` needs as records here
    host.deliver(_Bare(lease, cast(list[Record], range(size))))
    return size


class LeaseConsumer(KeepingConsumer):
    """A member of a share group that acquires offsets and does not read their records.

    The records are fetched by their processor, with a plain fetch from the partition's leader. To be used in
    explicit mode; `acquire` replaces `poll`.
    """

    _intake = staticmethod(_take_in)

    async def acquire(self, max_records: int, timeout: float) -> list[Leased]:
        """Acquire up to `max_records` offsets as soon as there are any; none after `timeout` seconds.

        Raises:
            As `poll` does.
        """
        check_timeout(timeout)
        max_records = read_max_records(max_records)
        runtime, buffer = self._runtime, self._runtime.buffer
        self._begin()
        gap = runtime.metrics.poll_began()
        runtime.poll_gap_ms = gap * 1000
        runtime.membership.polled()
        runtime.polled_ms = runtime.now_ms()
        until_ms = runtime.now_ms() + max(timeout * 1000, ASKS_MS_MIN)
        deadline = self._loop.time() + timeout
        try:
            while True:
                parts = buffer.take_parts(max_records)
                leased = [each for lease, low, high in parts for each in _counted(lease).held(low, high)]
                if leased:
                    runtime.commit()
                    return leased
                self._raise_pending()
                with buffer.waiting(max_records, until_ms) as woken:
                    runtime.commit()
                    if not await done_by(woken, deadline):
                        return []
                self._raise_pending()
        finally:
            runtime.metrics.poll_ended()
            runtime.polled_ms = runtime.now_ms()

    @property
    def joined(self) -> bool:
        """Whether share partitions are assigned to this member."""
        return bool(self._runtime.membership.assignment)


def _counted(lease: Lease) -> CountedLease:
    assert isinstance(lease, CountedLease)
    return lease
