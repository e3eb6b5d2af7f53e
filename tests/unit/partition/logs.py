"""A log of record batches in memory, and time, stepped manually."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from struct import pack
from typing import Any, NamedTuple
from uuid import UUID

from tests.harness.batches import keyed_batch
from tests.unit.coordinator_log.world import World

from sharecore import storage
from sharecore._core import encode_records
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import ScannedBatch
from sharecore.storage.log import ReadApart

TOPIC = UUID(int=7)


class Slice(NamedTuple):
    records: bytes
    batches: list[tuple[int, int]]


class Ticket:
    """A write that is pending until `settle`."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self._done = False
        self._callbacks: list[Callable[[Ticket], None]] = []

    def done(self) -> bool:
        return self._done

    def add_done_callback(self, callback: Callable[[Ticket], None]) -> None:
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def settle(self, error: KafkaError | None = None) -> None:
        self.error, self._done = error, True
        for callback in self._callbacks:
            callback(self)


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    ticket: Ticket


class MemoryLog:
    """One partition. Records are readable at once; appends of coordinators complete in `settle`.

    Args:
        hold: whether coordinators' appends wait for `settle`; otherwise they are durable at once.
    """

    def __init__(self, topic: str = "t", index: int = 0, *, hold: bool = False) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = TOPIC
        self.start_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.hold = hold
        self.failing = False
        self.appends = 0
        self.bytes_read = 0
        self.cold = False
        self.warming: list[Callable[[KafkaError | bool], None]] = []
        self.reads_until_failure: int | None = None
        self.transactions: list[tuple[int, int]] = []
        self._open: list[tuple[Ticket, int, list[tuple[int, int, bytes | None, bytes | None]]]] = []
        self._batches: list[tuple[int, int, bytes]] = []
        self._records: list[tuple[int, int, bytes | None, bytes | None]] = []
        self._end = 0
        self._listeners: list[Callable[[Any], None]] = []

    @property
    def end_offset(self) -> int:
        return self._end

    def produce(self, *counts: int, size: int = 100, attributes: int = 0, producer_id: int = -1) -> None:
        """Append record batches with these numbers of records."""
        for count in counts:
            first, last = self._end, self._end + count - 1
            head = pack(">qiibIhiqqq", first, size - 12, 0, 2, 0, attributes, count - 1, 0, 0, producer_id)
            self._batches.append((first, last, head + bytes(size - len(head))))
            self._end = last + 1
        self.high_watermark = self.last_stable_offset = self._end
        self._tell()

    def produce_records(self, *headers: dict[str, str], now_ms: int = 0) -> None:
        """Append a record batch, with a record per mapping of headers."""
        pairs = [[(name, value.encode()) for name, value in each.items()] for each in headers]
        encoded = encode_records([(None, b"x", each) for each in pairs], now_ms=now_ms)
        self.append_batch(encoded, len(headers))

    def produce_keyed(self, *keys: bytes | None, damaged: bool = False, **made: Any) -> None:
        """Append a compressed record batch with these keys."""
        data = keyed_batch([(key, b"v") for key in keys], base=self._end, gzipped=True, **made)
        self.append_batch(data[:-9] + bytes(9) if damaged else data, len(keys))

    def append_batch(self, batch: bytes, count: int) -> None:
        """Append a record batch with this number of records, assigning offsets."""
        first, last = self._end, self._end + count - 1
        self._batches.append((first, last, first.to_bytes(8, "big") + batch[8:]))
        self._end = last + 1
        self.high_watermark = self.last_stable_offset = self._end
        self._tell()

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = (1 << 63) - 1,
    ) -> Slice:
        if not self.start_offset <= offset <= self._end:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if self.reads_until_failure is not None:
            self.reads_until_failure -= 1
            if self.reads_until_failure < 0:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a bad sector")
        end = self.high_watermark if limit is None else limit
        out: list[tuple[int, int, bytes]] = []
        size = 0
        for first, last, data in self._batches:
            if last < offset:
                continue
            if last >= end or (size + len(data) > max_bytes and not (at_least_one and not out)):
                break
            if out and out[-1][1] - offset + 1 >= max_records:
                break
            out.append((first, last, data))
            size += len(data)
        self.bytes_read += size
        return Slice(b"".join(data for _, _, data in out), [(first, last) for first, last, _ in out])

    def read_cached(self, offset: int, max_bytes: int, **how: Any) -> Slice | None:
        if self.cold:
            return None
        return self.read(offset, max_bytes, **how)

    def read_apart(
        self,
        offset: int,
        max_bytes: int,
        ended: Callable[[ReadApart], None],
        *,
        whole: bool = False,
        **how: Any,
    ) -> int:
        """Start a read, which the test completes with `warmed`, `read_by_thread` or `fail_reads`."""

        def end(outcome: KafkaError | bool) -> None:
            if isinstance(outcome, KafkaError):
                ended(outcome)
            else:
                is_found = outcome or whole
                ended(storage.Slice(*self.read(offset, max_bytes, **how)) if is_found else None)

        self.warming.append(end)
        return self.readable_bytes(offset, max_bytes, **how)

    def warmed(self, *, still_cold: bool = False) -> None:
        """Complete the read: the records are in memory now, unless still cold."""
        self.cold = still_cold
        self._end_reads(False)

    def read_by_thread(self) -> None:
        """Complete the read with its records, which are still not in memory."""
        self._end_reads(True)

    def fail_reads(self) -> None:
        """Fail the read."""
        self._end_reads(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a bad sector"))

    def _end_reads(self, outcome: KafkaError | bool) -> None:
        warming, self.warming = self.warming, []
        for ended in warming:
            ended(outcome)

    def readable_bytes(self, offset: int, max_bytes: int, **how: Any) -> int:
        read = self.bytes_read
        size = len(self.read(offset, max_bytes, **how).records)
        self.bytes_read = read
        return size

    @property
    def stored(self) -> None:
        return None

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        return self.transactions

    def isolate(self, *, committed: bool) -> Any:
        return self

    def when_known(self, done: Callable[[None], object]) -> None:
        done(None)

    ask_limits = when_known

    def find_offset(self, timestamp: int) -> Future[tuple[int, int, int] | None]:
        looking: Future[tuple[int, int, int] | None] = Future()
        looking.set_result(
            next(((first, timestamp, 0) for first, _, _ in self._batches if first >= timestamp), None)
        )
        return looking

    def on_advance(self, callback: Callable[[Any], None]) -> None:
        self._listeners.append(callback)

    def off_advance(self, callback: Callable[[Any], None]) -> None:
        self._listeners.remove(callback)

    def delete_records(self, before_offset: int) -> Ticket:
        self.start_offset = before_offset
        self._records = [record for record in self._records if record[0] >= before_offset]
        self._tell()
        ticket = Ticket()
        ticket.settle()
        return ticket

    # as a coordinator's topic

    def append_local(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        now_ms: int,
        producer: object = None,
        lingers: bool = False,
    ) -> Appended:
        base = self._end
        self._end += len(records)
        self.appends += 1
        ticket = Ticket()
        content = [(base + n, now_ms, key, value) for n, (key, value) in enumerate(records)]
        self._open.append((ticket, self._end, [*content]))
        if not self.hold:
            self.settle()
        return Appended(base, self._end - 1, ticket)

    def hurry(self) -> None: ...

    def settle(self) -> None:
        """Complete the pending writes: successfully, or not if `failing`."""
        under_way, self._open = self._open, []
        if self.failing:
            self._end = self.high_watermark
            for ticket, _, _ in under_way:
                ticket.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space"))
            return
        for ticket, end, content in under_way:
            self._records += content
            self.high_watermark = end
            ticket.settle()

    def scan(self, offset: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        return (record for record in list(self._records) if record[0] >= offset)

    def scan_batches(self, offset: int) -> Iterator[ScannedBatch]:
        return (ScannedBatch(-1, False, [record]) for record in self.scan(offset))

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener(self)


__all__ = ["TOPIC", "MemoryLog", "World"]
