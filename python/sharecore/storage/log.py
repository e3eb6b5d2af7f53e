"""One partition of one topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import UUID

from sharecore._core import records_without_key
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage.disk_reads import DiskReads
from sharecore.storage.ticket import Ticket
from sharecore.waiting import settle

if TYPE_CHECKING:
    from sharecore._core import Store

_SCAN_BYTES = 1 << 20
_LEADER_EPOCH = 0
ANY_RECORDS = (1 << 63) - 1
"""As many records as there are."""

T = TypeVar("T")


class RecordsRefused(KafkaError):
    """A batch that is refused for some of its records.

    Args:
        indexes: which records of the batch.
        reason: what is wrong with each of them.
        message: about the batch.
    """

    def __init__(self, code: ErrorCode, indexes: Sequence[int], reason: str, message: str) -> None:
        super().__init__(code, message)
        self.indexes = indexes
        self.reason = reason


LocalRecord = tuple[bytes | None, bytes | None]
"""Key and value of a record that the broker writes itself."""


class Appended(NamedTuple):
    """Where an append went; `append_time_ms` is -1 unless the topic uses the broker's time."""

    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int
    ticket: Ticket


class Slice(NamedTuple):
    """Whole record batches, and the first and last offset of each."""

    records: bytes
    batches: list[tuple[int, int]]


class ScannedBatch(NamedTuple):
    """A batch with its records decoded.

    Args:
        producer_id: whose transaction it is part of; -1 outside of transactions.
        is_control: whether it ends that transaction instead of adding to it.
        records: offset, timestamp, key and value of each.
    """

    producer_id: int
    is_control: bool
    records: Sequence[tuple[int, int, bytes | None, bytes | None]]

    @property
    def is_commit(self) -> bool:
        """Of a control batch: whether the transaction was committed (KIP-98: version and type make the
        key).
        """
        key = self.records[0][2] or b""
        return key[2:4] == b"\x00\x01"


class Log:
    """A log of record batches.

    Attributes:
        start_offset: first offset that may be read.
        high_watermark: end of what is durable, and so of what may be read.
        last_stable_offset: end of what is durable and belongs to no open transaction.
        end_offset: offset of the next record, writes under way counted.
        needs_keys: records without a key are refused, as compacted topics have it.
    """

    __slots__ = (
        "__weakref__",
        "_disk",
        "_listeners",
        "_store",
        "_ticket",
        "end_offset",
        "high_watermark",
        "index",
        "last_stable_offset",
        "log_id",
        "needs_keys",
        "start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        store: Store,
        ticket: Callable[[int], Ticket],
        disk: DiskReads,
        log_id: int,
        topic: str,
        index: int,
        topic_id: UUID,
    ) -> None:
        self._store = store
        self._ticket = ticket
        self._disk = disk
        self._listeners: list[Callable[[Log], object]] = []
        self.log_id = log_id
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.needs_keys = False
        self.start_offset = self.high_watermark = self.last_stable_offset = self.end_offset = 0

    def append(self, records: bytes, *, now_ms: int) -> Appended:
        """Appends a client's record batch.

        A batch that an idempotent producer has sent before is answered with its old offsets.

        Args:
            records: one record batch of format v2; its base offset is assigned here.
            now_ms: milliseconds since the epoch.

        Raises:
            KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP,
                UNSUPPORTED_FOR_MESSAGE_FORMAT, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, or
                KAFKA_STORAGE_ERROR when too much waits for the disk. Nothing is appended then.
        """
        if self.needs_keys:
            self._check_keys(records)
        return self._appended(self._store.append(self.log_id, records, now_ms))

    def _check_keys(self, records: bytes) -> None:
        indexes = records_without_key(records)
        if not indexes:
            return
        where = f"{self.topic}-{self.index}"
        reason = f"Compacted topic cannot accept message without key in topic partition {where}"
        named = ", ".join(f"RecordError(batchIndex={index}, message='{reason}')" for index in indexes[:3])
        raise RecordsRefused(
            ErrorCode.INVALID_RECORD,
            indexes,
            reason,
            f"One or more records have been rejected due to {len(indexes)} record errors in total, and only "
            f"showing the first three errors at most: [{named}]",
        )

    def append_local(
        self, records: Sequence[LocalRecord], *, now_ms: int, producer: tuple[int, int] | None = None
    ) -> Appended:
        """Appends a batch of the broker's own records, for internal topics; no value is a tombstone.

        Args:
            producer: id and epoch of the producer whose transaction the records are part of.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH when the producer has been fenced, MESSAGE_TOO_LARGE, or
                KAFKA_STORAGE_ERROR when too much waits for the disk.
        """
        return self._appended(self._store.append_local(self.log_id, records, now_ms, producer))

    def append_marker(
        self, producer_id: int, producer_epoch: int, *, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> Appended:
        """Ends a producer's transaction in this log (a control batch, KIP-98)."""
        return self._appended(
            self._store.append_marker(
                self.log_id, producer_id, producer_epoch, coordinator_epoch, commit, now_ms
            )
        )

    def _appended(self, appended: tuple[int, int, int, int, int]) -> Appended:
        base, last, append_time_ms, start, sequence = appended
        if last >= self.end_offset:
            self.end_offset = last + 1
        return Appended(base, last, append_time_ms, start, self._ticket(sequence))

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ANY_RECORDS,
    ) -> Slice:
        """Reads whole batches, the first of which holds `offset` or follows it; waits for the disk.

        Args:
            max_bytes: about how many bytes.
            limit: offset that no batch reaches; the high watermark unless given.
            at_least_one: return the first batch however large it is.
            max_records: end with the batch that reaches this many offsets from `offset` on.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, or KAFKA_STORAGE_ERROR when the disk cannot be read.
        """
        return Slice(*self._store.read(self.log_id, offset, max_bytes, limit, at_least_one, max_records))

    def read_cached(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ANY_RECORDS,
    ) -> Slice | None:
        """As `read`, but never waits: None when some of it is in no memory, the page cache counted.

        An event loop reads with this, and calls `warm` after None.
        """
        found = self._store.read_cached(self.log_id, offset, max_bytes, limit, at_least_one, max_records)
        return None if found is None else Slice(*found)

    def warm(
        self,
        offset: int,
        max_bytes: int,
        ended: Callable[[], object],
        *,
        limit: int | None = None,
        max_records: int = ANY_RECORDS,
    ) -> None:
        """Has what `read` would return read into memory by a thread; `read` does not wait then, or not long.

        Args:
            ended: called on the event loop when that is done, whether it went well or not; an error shows
                again in `read`.
        """
        reading = self._disk.run(lambda: self._store.warm(self.log_id, offset, max_bytes, limit, max_records))

        def done(reading: asyncio.Future[None]) -> None:
            if not reading.cancelled():
                reading.exception()
                ended()

        reading.add_done_callback(done)

    def readable_bytes(self, offset: int, max_bytes: int, *, limit: int | None = None) -> int:
        """How many bytes `read` would return, without reading them; raises as it does.

        Never waits: `max_bytes` when only the disk knows.
        """
        found = self._store.readable_bytes(self.log_id, offset, max_bytes, limit)
        return max_bytes if found is None else found

    def scan(self, offset: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        """Durable records from `offset` on: offset, timestamp, key, value; control records are left out.

        Raises:
            ValueError: a batch cannot be decoded; says where.
        """
        for batch in self.scan_batches(offset):
            if not batch.is_control:
                for record in batch.records:
                    if record[0] >= offset:
                        yield record

    def scan_batches(self, offset: int) -> Iterator[ScannedBatch]:
        """Durable batches with their records, the first of which holds `offset` or follows it.

        Raises:
            ValueError: a batch cannot be decoded; says where.
        """
        while offset < self.high_watermark:
            batches, following = self._store.scan(self.log_id, offset, _SCAN_BYTES)
            if following <= offset:
                return
            yield from map(ScannedBatch._make, batches)
            offset = following

    def offset_for(self, timestamp: int) -> tuple[int, int, int] | None:
        """The first record from the start on that is not older: offset, timestamp, leader epoch."""
        found = self._store.offset_for(self.log_id, timestamp)
        return None if found is None else (*found, _LEADER_EPOCH)

    def max_timestamp(self) -> tuple[int, int, int] | None:
        """The first of the newest records: offset, timestamp, leader epoch."""
        timestamp = self._store.max_timestamp(self.log_id)
        return None if timestamp is None else self.offset_for(timestamp)

    def look_up(self, find: Callable[[Log], T]) -> asyncio.Future[T]:
        """Calls `find` with this log in a thread that may wait for the disk, as `offset_for` does."""
        return self._disk.run(lambda: find(self))

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """Transactions with records in `[first, end)` that were aborted: producer id, first offset."""
        return self._store.aborted(self.log_id, first, end)

    def delete_records(self, before_offset: int) -> Ticket:
        """Moves the start to `before_offset`; raises KafkaError(OFFSET_OUT_OF_RANGE) past the end."""
        return self._ticket(self._store.delete_records(self.log_id, before_offset))

    async def retain(self, *, oldest_ms: int | None, max_bytes: int | None) -> Ticket | None:
        """Deletes what is too old or too much, batch by batch from the start.

        Args:
            oldest_ms: batches go whose newest record is older than this.
            max_bytes: batches go as long as so many bytes are left behind them.

        Returns:
            the write that moves the start; None when nothing has to go.
        """
        sequence = await self._disk.run(
            lambda: self._store.retain(self.log_id, oldest_ms=oldest_ms, max_bytes=max_bytes)
        )
        return None if sequence is None else self._ticket(sequence)

    def configure(
        self,
        *,
        max_batch_bytes: int,
        log_append_time: bool,
        before_max_ms: int,
        after_max_ms: int,
        needs_keys: bool = False,
    ) -> None:
        """Sets what the log accepts (max.message.bytes, message.timestamp.*, cleanup.policy)."""
        self.needs_keys = needs_keys
        self._store.configure(
            self.log_id,
            max_batch_bytes=max_batch_bytes,
            log_append_time=log_append_time,
            before_max_ms=before_max_ms,
            after_max_ms=after_max_ms,
        )

    @property
    def size_bytes(self) -> int:
        """Bytes of the batches that it holds."""
        return self._store.log_bytes(self.log_id)

    def on_advance(self, callback: Callable[[Log], object]) -> None:
        """Calls back after the high watermark, the last stable offset or the start has moved."""
        self._listeners.append(callback)

    def off_advance(self, callback: Callable[[Log], object]) -> None:
        """Removes a callback."""
        if callback in self._listeners:
            self._listeners.remove(callback)

    def moved(self, offsets: tuple[int, int, int, int]) -> None:
        """Takes the offsets that the store reports; for the storage alone."""
        self.start_offset, self.high_watermark, self.last_stable_offset, self.end_offset = offsets

    def notify(self) -> None:
        """Tells the listeners; for the storage alone."""
        if self._listeners:
            settle(tuple(self._listeners), self)
