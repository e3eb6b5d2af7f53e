"""One ShareFetch while it gathers records: from several share partitions, at once or after a wait."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
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
    """Gathers records for one member out of a ready set, from the place `first` on.

    It ends when at least `min_bytes` were acquired, when a partition that it waits for has failed, or when
    its time is over; nothing is acquired before that, so that no lease runs while the client waits. Records
    that have to be read from the disk first are waited for, whatever the time.

    Args:
        found: leaders of partitions that the ready set does not know yet; they are loaded.
        ready: where it looks; what comes into it while the fetch waits is looked at, too.
        ended: called once with what was acquired, unless `begin` returned it.
        hidden: partitions that it must not look at.
    """

    def __init__(
        self,
        member: str,
        found: Sequence[SharePartition],
        ready: ReadySet,
        limits: FetchLimits,
        call_later: CallLater,
        ended: Callable[[list[PartitionFetch]], object],
        *,
        first: int = 0,
        hidden: Container[SharePartitionId] = (),
    ) -> None:
        super().__init__(call_later, ended)
        self._member = member
        self._found = found
        self._failed: list[SharePartition] = []
        self._ready = ready
        self._limits = limits
        self._first = first
        self._hidden = hidden
        self._gathering = False

    def begin(self) -> list[PartitionFetch] | None:
        """Fetches at once, or begins to wait: None, and `ended` will be called."""
        for partition in self._found:
            partition.load()
        return self.start(self._limits.max_wait_ms if self._wants_records else 0)

    @property
    def _wants_records(self) -> bool:
        return self._limits.max_bytes > 0 and self._limits.max_records > 0

    def look(self, *, late: bool) -> list[PartitionFetch] | None:
        if self._found:
            self._take_in()
        if late:
            return self._last_look()
        min_bytes = self._limits.min_bytes
        if min_bytes > 1 and not self._readable(min(min_bytes, self._limits.max_bytes)):
            return None
        results = self._gather()
        for result in results:
            if result.acquired:
                return results
        return None

    def _take_in(self) -> None:
        """Puts those leaders into the ready set that have loaded."""
        found, loading = self._found, []
        for partition in found:
            if partition.engine is not None:
                self._ready.put(partition)
            elif partition.error is not None:
                self._failed.append(partition)
            else:
                loading.append(partition)
        self._found = loading

    def _last_look(self) -> list[PartitionFetch] | None:
        results = self._gather()
        if not results and self._wants_records:
            reading = [partition for partition in self._walk() if partition.reading]
            for partition in reading:
                partition.when_read(self.again)
            if reading:
                return None
        return results

    def watch(self) -> None:
        self._ready.wait(self)
        for partition in self._found:
            partition.when_loaded(self.again)
        for partition in chain(self._walk(), self._found, self._failed):
            self._ready.ask(partition)

    def unwatch(self) -> None:
        self._ready.stop_waiting(self)

    def offer(self, partition: SharePartition) -> None:
        """A partition may have something now."""
        if partition.id not in self._hidden:
            self.again()

    def partition_failed(self, partition: SharePartition, error: KafkaError) -> None:
        """A partition of the session is gone."""
        if self.waiting and not self._gathering and partition.id not in self._hidden:
            self._failed.append(partition)
            self.end(self._gather())

    def _walk(self) -> Iterator[SharePartition]:
        """The partitions to look at, in their order."""
        leaders = self._ready.walk(self._first)
        return leaders if not self._hidden else (each for each in leaders if each.id not in self._hidden)

    def _readable(self, wanted: int) -> bool:
        """Whether the partitions have so many bytes together.

        One that cannot be read counts for nothing here; the answer tells of it.
        """
        for partition in self._walk():
            with suppress(KafkaError):
                wanted -= partition.readable_bytes(wanted)
            if wanted <= 0:
                return True
        return False

    def _gather(self) -> list[PartitionFetch]:
        self._gathering = True
        try:
            return self._acquire()
        finally:
            self._gathering = False

    def _acquire(self) -> list[PartitionFetch]:
        """As many partitions that have something as records are wanted get an equal part of the bytes each,
        others what is left; the first has one batch whatever its size.
        """
        limits = self._limits
        results: list[PartitionFetch] = []
        fetchable = self._fetchable()
        chosen = list(islice(fetchable, limits.max_records)) if self._wants_records else []
        bytes_left, records_left = limits.max_bytes, limits.max_records
        for partition in chain(chosen, fetchable) if chosen else ():
            try:
                leased = partition.acquire(
                    self._member,
                    min(bytes_left, limits.max_bytes // len(chosen)),
                    records_left,
                    limits.batch_size,
                    record_limit=limits.record_limit,
                    at_least_one=bytes_left == limits.max_bytes,
                )
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    results.append(PartitionFetch(partition, b"", [], error))
                continue
            if leased.acquired:
                results.append(PartitionFetch(partition, leased.records, leased.acquired))
                bytes_left -= len(leased.records)
                records_left -= leased.total
                if bytes_left <= 0 or records_left <= 0:
                    break
        failed = [PartitionFetch(each, b"", [], each.error) for each in self._failed if each.error]
        return failed + results

    def _fetchable(self) -> Iterator[SharePartition]:
        """The partitions that have something; empty ones leave the ready set."""
        for partition in self._walk():
            if partition.fetchable:
                yield partition
            elif partition.engine is not None:
                self._ready.empty(partition)
            elif partition.error is not None:
                self._failed.append(partition)
