"""One ShareFetch while it gathers records: from several share partitions, at once or after a wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from contextlib import suppress
from typing import NamedTuple

from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition.leader import SharePartition
from sharecore.partition.ready import ReadySet, SharePartitionId
from sharecore.partition.records import Acquired
from sharecore.waiting import CallLater, DelayedFetch


class FetchLimits(NamedTuple):
    """What a ShareFetch asks for, as in its request."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    record_limit: bool = False


class PartitionFetch(NamedTuple):
    """What one share partition gave."""

    partition: SharePartition
    records: bytes
    acquired: list[Acquired]
    error: KafkaError | None = None


class ShareFetch(DelayedFetch[list[PartitionFetch]]):
    """Gathers records for one member, partitions in the order given.

    It ends when at least `min_bytes` were acquired, when a partition has an error to tell, or when its time
    is over; nothing is acquired before that, so that no lease runs while the client waits. Records that have
    to be read from the disk first are waited for, whatever the time.

    Args:
        partitions: leaders of those of the ready set.
        ready: what comes into it while the fetch waits is looked at, too.
        ended: called once with what was acquired, unless `begin` returned it.
        order: in which partitions are served; leaves out those that have left the session.
        hidden: partitions that the member may not read.
    """

    def __init__(
        self,
        member: str,
        partitions: Sequence[SharePartition],
        ready: ReadySet,
        limits: FetchLimits,
        call_later: CallLater,
        ended: Callable[[list[PartitionFetch]], object],
        *,
        order: Callable[[Collection[SharePartitionId]], list[SharePartitionId]] = list,
        hidden: Container[SharePartitionId] = (),
    ) -> None:
        super().__init__(call_later, ended)
        self._member = member
        self._partitions = {partition.id: partition for partition in partitions}
        self._ready = ready
        self._limits = limits
        self._order = order
        self._hidden = hidden

    def begin(self) -> list[PartitionFetch] | None:
        """Fetches at once, or begins to wait: None, and `ended` will be called."""
        for partition in self._partitions.values():
            partition.load()
        return self.start(self._limits.max_wait_ms if self._wants_records else 0)

    @property
    def _wants_records(self) -> bool:
        return self._limits.max_bytes > 0 and self._limits.max_records > 0

    def look(self, *, late: bool) -> list[PartitionFetch] | None:
        if late:
            return self._last_look()
        min_bytes = self._limits.min_bytes
        if min_bytes > 1 and not self._readable(min(min_bytes, self._limits.max_bytes)):
            return None
        results = self._gather()
        return results if any(result.acquired for result in results) else None

    def _last_look(self) -> list[PartitionFetch] | None:
        results = self._gather()
        if not results and self._wants_records:
            reading = [partition for partition in self._partitions.values() if partition.reading]
            for partition in reading:
                partition.when_read(self.again)
            if reading:
                return None
        return results

    def watch(self) -> None:
        self._ready.wait(self)
        for partition in list(self._partitions.values()):
            if partition.engine is None:
                partition.when_loaded(self.again)
            self._ready.ask(partition)

    def unwatch(self) -> None:
        self._ready.stop_waiting(self)

    def offer(self, partition: SharePartition) -> None:
        """A partition may have something now."""
        if partition.id not in self._hidden:
            self._partitions[partition.id] = partition
            self.again()

    def partition_failed(self, partition: SharePartition, error: KafkaError) -> None:
        """A partition that it waits for is gone."""
        if self.waiting and partition.id not in self._hidden:
            self._partitions[partition.id] = partition
            self.end(self._gather())

    def _readable(self, wanted: int) -> bool:
        """Whether the partitions have so many bytes together.

        One that cannot be read counts for nothing here; the answer tells of it.
        """
        for partition in self._partitions.values():
            with suppress(KafkaError):
                wanted -= partition.readable_bytes(wanted)
            if wanted <= 0:
                return True
        return False

    def _gather(self) -> list[PartitionFetch]:
        """Each partition that has something gets an equal part of the bytes; the first has one batch
        whatever its size.
        """
        limits = self._limits
        ready: list[SharePartition] = []
        results: list[PartitionFetch] = []
        for name in self._order(self._partitions):
            partition = self._partitions[name]
            if partition.error is None and partition.fetchable:
                ready.append(partition)
            elif partition.error is not None:
                results.append(PartitionFetch(partition, b"", [], partition.error))
            elif partition.engine is not None:
                del self._partitions[name]
                self._ready.empty(partition)
        bytes_left, records_left = limits.max_bytes, limits.max_records
        for partition in ready:
            if bytes_left <= 0 or records_left <= 0:
                break
            try:
                records, acquired = partition.acquire(
                    self._member,
                    min(bytes_left, limits.max_bytes // len(ready)),
                    records_left,
                    limits.batch_size,
                    record_limit=limits.record_limit,
                    at_least_one=bytes_left == limits.max_bytes,
                )
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    results.append(PartitionFetch(partition, b"", [], error))
                continue
            if acquired:
                results.append(PartitionFetch(partition, records, acquired))
                bytes_left -= len(records)
                records_left -= sum(last - first + 1 for first, last, _ in acquired)
        return results
