"""A partition of the state topic in memory, with real record batches, and writers that compare and append."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence

from sharecore._core import encode_batch
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.upstream.sources import Sink
from sharecore.upstream import EARLIEST, Fenced, Fetched, ListedOffset, Producer

TOPIC = "state"


class Partition:
    """The cluster's copy of one partition; every response is immediate.

    Attributes:
        producers: the newest epoch of the producer shared by all writers.
        refused: raised by the next append, which is not made.
        fences: whether producers with an older epoch than the newest one are refused.
        asked: the number of requests for offsets or records, without followers.
    """

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        self.start = self.end = 0
        self.epoch = self.written_epoch = -1
        self.refused: KafkaError | None = None
        self.deleted: list[int] = []
        self.before_append: Callable[[], object] | None = None
        self.asked = 0
        self.fences = False
        self.followers: list[Follower] = []
        self._sequences: dict[Producer, int] = {}

    def append(self, records: Sequence[Record], now_ms: int, producer: Producer) -> int:
        """Append the producer's next batch; return its offset."""
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + len(records)
        return self.append_again(records, now_ms, producer, sequence)

    def append_again(self, records: Sequence[Record], now_ms: int, producer: Producer, sequence: int) -> int:
        """Append without checking the producer's state, like a cluster that lost it."""
        data = encode_batch(list(records), now_ms=now_ms, producer=(*producer, sequence))
        base, self.end = self.end, self.end + len(records)
        self.written_epoch = max(self.written_epoch, producer.epoch)
        self.batches.append((base, self.end, struct.pack(">q", base) + data[8:]))
        for each in self.followers:
            asyncio.get_running_loop().call_soon(each.advance)
        return base

    async def list_offsets(
        self, wanted: Mapping[tuple[str, int], int], *, committed: bool = False
    ) -> dict[tuple[str, int], ListedOffset | KafkaError]:
        self.asked += 1
        return {
            place: ListedOffset(self.start if which == EARLIEST else self.end, -1, 0)
            for place, which in wanted.items()
        }

    async def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> Fetched:
        self.asked += 1
        found = [each for each in self.batches if each[1] > offset]
        some = found[:2]  # never all at once
        end = some[-1][1] if some else offset
        data = b"".join(batch for _, _, batch in some)
        return Fetched(data, offset, end, self.end, self.end, self.start, [])

    async def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int | KafkaError]:
        [(index, offset)] = before.items()
        self.start = offset
        self.deleted.append(offset)
        self.batches = [each for each in self.batches if each[1] > offset]
        return {index: offset}


class Follower:
    """A follower of a partition (`upstream.Subscription`)."""

    def __init__(self, partition: Partition, offset: int, sink: Sink) -> None:
        self.partition, self.offset, self.sink = partition, offset, sink
        partition.followers.append(self)
        asyncio.get_running_loop().call_soon(self.advance)

    def advance(self) -> None:
        if self not in self.partition.followers:
            return
        found = [each for each in self.partition.batches if each[1] > self.offset]
        if found:
            first, self.offset = self.offset, found[-1][1]
            data, end = b"".join(batch for _, _, batch in found), self.offset
            self.sink.fetched(Fetched(data, first, end, end, end, self.partition.start, []))

    def allow(self, room: int) -> None:
        """Do nothing: there is always room."""

    def seek(self, offset: int, room: int) -> None:
        self.offset = offset
        self.advance()

    def was_read(self, leader_epoch: int) -> None:
        """Do nothing: there is one epoch."""

    def close(self) -> None:
        self.partition.followers.remove(self)


class Following:
    """Follows partitions (`upstream.Fetcher`)."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = partitions

    def subscribe(self, topic: str, partition: int, offset: int, room: int, sink: Sink) -> Follower:
        return Follower(self._partitions[partition], offset, sink)


class Writer:
    """As `upstream.ExclusiveWriter`, without time: an append is complete when it returns.

    Args:
        compares: whether an append at another offset than expected is detected.
    """

    def __init__(self, partition: Partition, *, compares: bool = True) -> None:
        self.partition = partition
        self.next_offset = 0
        self.producer: Producer | None = Producer(7, -1)
        self._compares = compares
        self._closed: KafkaError | None = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._told: list[Callable[[KafkaError], None]] = []

    async def renew(self) -> Producer:
        self.partition.epoch += 1
        return Producer(7, self.partition.epoch)

    async def open(self, next_offset: int, producer: Producer | None = None) -> Producer:
        self.producer = opened = producer or await self.renew()
        self.next_offset, self._closed = next_offset, None
        return opened

    def on_closed(self, callback: Callable[[KafkaError], None]) -> None:
        self._told.append(callback)

    def on_intrusion(self, callback: object) -> None:
        """A write before an append takes over the partition."""

    def close(self, error: KafkaError) -> None:
        self._closed = error

    def append(
        self, records: Sequence[Record], now_ms: int, done: Callable[[KafkaError | None], None]
    ) -> int:
        if self._closed is not None:
            raise self._closed
        expected = self.next_offset
        if self.partition.before_append is not None:
            before, self.partition.before_append = self.partition.before_append, None
            before()
        assert self.producer is not None
        older = self.partition.fences and self.producer.epoch < self.partition.written_epoch
        if older:
            self.partition.refused = Fenced(ErrorCode.INVALID_PRODUCER_EPOCH, "a newer writer was here")
        if self.partition.refused is not None:
            refused, self.partition.refused = self.partition.refused, None
            if older:
                self._closed = refused
            done(refused)
            return expected
        found = self.partition.append(records, now_ms, self.producer)
        self.next_offset = expected + len(records)
        if self._compares and found != expected:
            error = Fenced(ErrorCode.NOT_LEADER_OR_FOLLOWER, "somebody else writes there")
            self._closed = error
            done(error)
            for each in self._told:
                each(error)
            return expected
        done(None)
        return expected
