"""One partition of one topic in the compiled store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from sharecore._core import StoredLog, Ticket
from sharecore.errors import KafkaError
from sharecore.storage.disk_reads import DiskReads
from sharecore.storage.log import (
    ActiveProducer,
    Appended,
    DamagedLog,
    FirstBatch,
    Found,
    LocalRecord,
    Log,
    ReadApart,
    ReadSpec,
    ScannedBatch,
    Slice,
)

if TYPE_CHECKING:
    from sharecore._core import Store, Tickets

_SCAN_BYTES = 1 << 20
_LEADER_EPOCH = 0


class StoreLog(Log):
    """A log in the store of a data directory."""

    __slots__ = ("_disk", "_hurry", "_store", "_ticket", "log_id")

    def __init__(
        self,
        store: Store,
        tickets: Tickets,
        disk: DiskReads,
        log_id: int,
        topic: str,
        index: int,
        topic_id: UUID,
    ) -> None:
        super().__init__(topic, index, topic_id)
        self._store = store
        self._ticket = tickets.ticket
        self._disk = disk
        self.log_id = log_id
        self.stored = stored = StoredLog(store, log_id, tickets, disk)
        self._hurry = stored.hurry
        offsets = store.offsets(log_id)
        self.start_offset, self.high_watermark, self.last_stable_offset, self.end_offset = offsets

    def append(self, records: bytes, *, now_ms: int) -> Appended:
        return self._appended(self._store.append(self.log_id, records, now_ms))

    def announce(self, producer: FirstBatch, *, from_zero: bool, now_ms: int) -> None:
        self._store.announce(self.log_id, producer, from_zero, now_ms)

    def append_local(
        self,
        records: Sequence[LocalRecord],
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        return self._appended(self._store.append_local(self.log_id, records, now_ms, producer, lingers))

    def hurry(self) -> None:
        self._hurry()

    def append_marker(
        self, producer_id: int, producer_epoch: int, *, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> Appended:
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

    def read(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice:
        return Slice(*self._store.read(self.log_id, offset, max_bytes, **spec))

    def read_cached(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice | None:
        found = self._store.read_cached(self.log_id, offset, max_bytes, **spec)
        return None if found is None else Slice(*found)

    def read_apart(
        self,
        offset: int,
        max_bytes: int,
        ended: Callable[[ReadApart], object],
        *,
        whole: bool = False,
        **spec: Unpack[ReadSpec],
    ) -> int:
        number, reading = self._store.read_apart(self.log_id, offset, max_bytes, whole=whole, **spec)
        self._disk.begun(number, reading, ended)
        return max_bytes if reading is None else reading.size

    def readable_bytes(self, offset: int, max_bytes: int, *, limit: int | None = None) -> int:
        found = self._store.readable_bytes(self.log_id, offset, max_bytes, limit)
        return max_bytes if found is None else found

    def scan(self, offset: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        for batch in self.scan_batches(offset):
            if not batch.is_control:
                for record in batch.records:
                    if record[0] >= offset:
                        yield record

    def scan_batches(self, offset: int) -> Iterator[ScannedBatch]:
        while offset < self.high_watermark:
            try:
                batches, following = self._store.scan(self.log_id, offset, _SCAN_BYTES)
            except KafkaError as error:
                raise KafkaError(error.code, f"{self.topic}-{self.index}: {error.message}") from error
            except ValueError as error:
                raise DamagedLog(f"{self.topic}-{self.index} is damaged: {error}") from error
            if following <= offset:
                return
            yield from map(ScannedBatch._make, batches)
            offset = following

    def find_offset(self, timestamp: int) -> asyncio.Future[Found | None]:
        return self._disk.run(lambda: self.offset_for(timestamp), from_bucket=True)

    def find_max_timestamp(self) -> asyncio.Future[Found | None]:
        return self._disk.run(self.max_timestamp, from_bucket=True)

    def offset_for(self, timestamp: int) -> Found | None:
        """Find an offset as `find_offset` does; waits for the disk."""
        found = self._store.offset_for(self.log_id, timestamp)
        return None if found is None else (*found, _LEADER_EPOCH)

    def max_timestamp(self) -> Found | None:
        """Find the maximum timestamp as `find_max_timestamp` does; waits for the disk."""
        timestamp = self._store.max_timestamp(self.log_id)
        return None if timestamp is None else self.offset_for(timestamp)

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        return self._store.aborted(self.log_id, first, end)

    def active_producers(self) -> list[ActiveProducer]:
        return [ActiveProducer(*each) for each in self._store.active_producers(self.log_id)]

    def delete_records(self, before_offset: int) -> Ticket:
        return self._ticket(self._store.delete_records(self.log_id, before_offset))

    async def retain(self, *, oldest_ms: int | None, max_bytes: int | None) -> Ticket | None:
        """Delete batches beyond the age or size limit, from the start.

        Args:
            oldest_ms: delete batches whose newest record is older than this.
            max_bytes: delete batches while this many bytes remain after them.

        Returns:
            the write that moves the start; None if nothing is deleted.
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
        compression: tuple[int, int | None] | None = None,
    ) -> None:
        self._store.configure(
            self.log_id,
            max_batch_bytes=max_batch_bytes,
            log_append_time=log_append_time,
            before_max_ms=before_max_ms,
            after_max_ms=after_max_ms,
            needs_keys=needs_keys,
            compression=compression,
        )

    @property
    def size_bytes(self) -> int:
        return self._store.log_bytes(self.log_id)
