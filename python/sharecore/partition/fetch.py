"""One ShareFetch while it gathers records: from several share partitions, at once or after a wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition.leader import SharePartition
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
        partitions: the leaders, in the order in which they are served.
        ended: called once with what was acquired, unless `begin` returned it.
    """

    def __init__(
        self,
        member: str,
        partitions: Sequence[SharePartition],
        limits: FetchLimits,
        call_later: CallLater,
        ended: Callable[[list[PartitionFetch]], object],
    ) -> None:
        super().__init__(call_later, ended)
        self._member = member
        self._partitions = partitions
        self._limits = limits

    def begin(self) -> list[PartitionFetch] | None:
        """Fetches at once, or begins to wait: None, and `ended` will be called."""
        for partition in self._partitions:
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
            reading = [partition for partition in self._partitions if partition.reading]
            for partition in reading:
                partition.when_read(self.again)
            if reading:
                return None
        return results

    def watch(self) -> None:
        for partition in self._partitions:
            if partition.engine is None:
                partition.when_loaded(self.again)
            partition.wait(self)

    def unwatch(self) -> None:
        for partition in self._partitions:
            partition.stop_waiting(self)

    def partition_failed(self, partition: SharePartition, error: KafkaError) -> None:
        """A partition that it waits for is gone."""
        if self.waiting:
            self.end(self._gather())

    def _readable(self, wanted: int) -> bool:
        """Whether the partitions have so many bytes together.

        One that cannot be read counts for nothing here; the answer tells of it.
        """
        for partition in self._partitions:
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
        ready = [each for each in self._partitions if each.error is None and each.fetchable]
        results = [
            PartitionFetch(each, b"", [], each.error) for each in self._partitions if each.error is not None
        ]
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
