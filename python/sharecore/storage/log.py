"""One partition of a topic."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypedDict, Unpack
from uuid import UUID

from sharecore._core import LogOffsets, Ticket
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Done

ANY_RECORDS = (1 << 63) - 1
"""No record limit."""


class DamagedLog(ValueError):
    """A batch of a log is damaged."""


LocalRecord = tuple[bytes | None, bytes | None]
"""Key and value of a record written by the broker."""


class Appended(NamedTuple):
    """The result of an append; `append_time_ms` is -1 unless the topic uses the broker's time."""

    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int
    ticket: Ticket


class Slice(NamedTuple):
    """Whole record batches, and the first and last offset of each."""

    records: bytes
    batches: list[tuple[int, int]]


class ReadSpec(TypedDict, total=False):
    """Limits of a read, besides its bytes.

    Attributes:
        limit: exclusive end offset; the high watermark by default.
        at_least_one: whether to return the first batch even if it is too large; True by default.
        max_records: end with the batch that reaches this many offsets; unlimited by default.
    """

    limit: int | None
    at_least_one: bool
    max_records: int


class ScannedBatch(NamedTuple):
    """A batch with its records decoded.

    Args:
        producer_id: its producer if it is transactional; -1 otherwise.
        is_control: whether it ends the transaction rather than adding to it.
        records: offset, timestamp, key and value of each.
    """

    producer_id: int
    is_control: bool
    records: Sequence[tuple[int, int, bytes | None, bytes | None]]

    @property
    def is_commit(self) -> bool:
        """For a control batch: whether it commits the transaction (KIP-98: the key is version and type)."""
        key = self.records[0][2] or b""
        return key[2:4] == b"\x00\x01"


ReadApart = Slice | KafkaError | None
"""The result of a read in a thread."""

Found = tuple[int, int, int]
"""Offset, its timestamp and leader epoch."""


class ActiveProducer(NamedTuple):
    """A log's state of a producer; -1 means unknown.

    Args:
        last_sequence: of its last batch with this epoch.
        last_timestamp_ms: of its last batch or marker.
        coordinator_epoch: of the coordinator that ended its last transaction.
        transaction_start: first offset of its open transaction.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start: int


class FirstBatch(NamedTuple):
    """A producer's batch: producer ID, epoch, and sequence number of the first record."""

    producer_id: int
    epoch: int
    sequence: int


class Log(LogOffsets, ABC):
    """A log of record batches.

    Attributes:
        start_offset: first readable offset.
        high_watermark: end of the durable, readable records.
        last_stable_offset: end of the durable records without open transactions.
        end_offset: offset of the next record, after pending writes.
    """

    __slots__ = (
        "__weakref__",
        "index",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, index: int, topic_id: UUID) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id

    @abstractmethod
    def append(self, records: bytes, *, now_ms: int) -> Appended:
        """Append a client's record batch.

        A duplicate from an idempotent producer returns the offsets of the original.

        Args:
            records: one record batch of format v2; its base offset is assigned here.
            now_ms: milliseconds since the epoch.

        Raises:
            KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP,
                UNSUPPORTED_FOR_MESSAGE_FORMAT, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH,
                INVALID_TXN_STATE for a non-transactional batch during the producer's open transaction, or
                KAFKA_STORAGE_ERROR if too many writes are pending. Nothing is appended then.
        """

    def announce(self, producer: FirstBatch, *, from_zero: bool, now_ms: int) -> None:
        """Announce a transactional batch that is about to be appended or was refused for now.

        Until the transaction has begun here, `append` refuses batches with a higher sequence
        (OUT_OF_ORDER_SEQUENCE_NUMBER): the refused batch could never follow them.

        Args:
            from_zero: a producer unknown to the log must begin with sequence 0 (KIP-890).
        """
        raise _not_here()

    def append_local(
        self,
        records: Sequence[LocalRecord],
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        """Append a batch of the broker's own records, for internal topics; a missing value is a tombstone.

        Args:
            producer: ID and epoch of the producer whose transaction the records belong to.
            lingers: nobody waits for it yet: it shares the next commit, or becomes durable some milliseconds
                later.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH if the producer was fenced, MESSAGE_TOO_LARGE, or
                KAFKA_STORAGE_ERROR if too many writes are pending.
        """
        raise _not_here()

    def hurry(self) -> None:
        """Flush lingering batches: a caller now waits for them."""
        raise _not_here()

    def append_marker(
        self, producer_id: int, producer_epoch: int, *, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> Appended:
        """End a producer's transaction in this log (a control batch, KIP-98)."""
        raise _not_here()

    @abstractmethod
    def read(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice:
        """Read whole batches from the one at or after `offset`; wait for the disk.

        Args:
            max_bytes: approximate limit.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, or KAFKA_STORAGE_ERROR if the disk cannot be read.
        """

    @abstractmethod
    def read_cached(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice | None:
        """Read without waiting; None if the records are not in memory or the page cache, or are too many.

        An event loop calls this first, and `read_apart` after None.
        """

    @abstractmethod
    def read_apart(
        self,
        offset: int,
        max_bytes: int,
        ended: Callable[[ReadApart], object],
        *,
        whole: bool = False,
        **spec: Unpack[ReadSpec],
    ) -> int:
        """Read on another thread; return the expected bytes, or `max_bytes` if unknown.

        Args:
            ended: called on the event loop with the result or error of `read`; None if `read_cached` or
                another `read_apart` now succeeds.
            whole: never None; it may cost a copy more.
        """

    @abstractmethod
    def readable_bytes(self, offset: int, max_bytes: int, *, limit: int | None = None) -> int:
        """Return how many bytes `read` would return; raise as it does.

        Never waits: returns `max_bytes` if only the disk knows.
        """

    def scan(self, offset: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        """Yield offset, timestamp, key and value of durable records from `offset`, without control records.

        Raises:
            DamagedLog: a batch cannot be decoded; says where.
        """
        raise _not_here()

    def scan_batches(self, offset: int) -> Iterator[ScannedBatch]:
        """Yield durable batches with their records, from the one at or after `offset`.

        Raises:
            DamagedLog: a batch cannot be decoded; says where.
        """
        raise _not_here()

    @abstractmethod
    def find_offset(self, timestamp: int) -> asyncio.Future[Found | None]:
        """Find the first record with at least this timestamp, on a thread that may wait for the disk."""

    @abstractmethod
    def find_max_timestamp(self) -> asyncio.Future[Found | None]:
        """Find the first record with the maximum timestamp."""

    @abstractmethod
    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return producer and first offset of aborted transactions with records in `[first, end)`."""

    def active_producers(self) -> list[ActiveProducer]:
        """Return the producers of this log by id; empty if they are not tracked."""
        return []

    def delete_records(self, before_offset: int) -> Ticket:
        """Move the log start offset; raise KafkaError(OFFSET_OUT_OF_RANGE) past the end."""
        raise _not_here()

    @abstractmethod
    def configure(
        self,
        *,
        max_batch_bytes: int,
        log_append_time: bool,
        before_max_ms: int,
        after_max_ms: int,
        needs_keys: bool = False,
        compression: tuple[int, int | None] | None = None,
    ) -> None:
        """Apply the topic's settings: batch size, timestamps, cleanup policy, compression.

        Args:
            needs_keys: whether records without a key are refused, as in compacted topics.
            compression: ID and level of a compression, as in batch attributes; level None: the default; None:
                keep the producer's.
        """

    @property
    def size_bytes(self) -> int:
        """Size of its batches in bytes."""
        raise _not_here()

    def isolate(self, *, committed: bool) -> Log:
        """Return this log for an isolation level; the same object if it serves both."""
        return self

    @property
    def is_known(self) -> bool:
        """Whether start and end offset are known."""
        return True

    def when_known(self, done: Done) -> None:
        """Call back once start and end offset are known; immediately if they always are."""
        done(None)

    def ask_limits(self, done: Done) -> None:
        """Refresh start and end offset, even if known, and call back as `when_known` does."""
        self.when_known(done)


def _not_here() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, "Another broker keeps this log, and alone can do that.")
