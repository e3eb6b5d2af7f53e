"""One ShareFetch while it gathers records: from several share partitions, at once or after a wait."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from sharecore._core import gather
from sharecore.errors import KafkaError
from sharecore.partition.leader import SharePartition
from sharecore.partition.leasing import Acquired
from sharecore.partition.ready import ReadySet, SharePartitionId
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
        self._gathering = self._has_loaded = False

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
            partition.when_loaded(self._loaded)
        for partition in chain(self._walk(), self._found, self._failed):
            self._ready.ask(partition)

    def unwatch(self) -> None:
        self._ready.stop_waiting(self)

    def _loaded(self) -> None:
        """A leader has loaded; where it was one of a thousand, so have others, and one look is for all."""
        if not self._has_loaded:
            self._has_loaded = True
            self._call_later(0, self._look_at_loaded)

    def _look_at_loaded(self) -> None:
        self._has_loaded = False
        self.again()

    def offer(self, partition: SharePartition) -> None:
        """A partition may have something now."""
        if partition.id not in self._hidden:
            self.again()

    def partition_failed(self, partition: SharePartition, error: KafkaError) -> None:
        """A partition of the session is gone."""
        if self.waiting and not self._gathering and partition.id not in self._hidden:
            self._failed.append(partition)
            self.end(self._gather())

    def _walk(self) -> list[SharePartition]:
        """The partitions to look at, in their order."""
        leaders = self._ready.walk(self._first)
        return leaders if not self._hidden else [each for each in leaders if each.id not in self._hidden]

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
        if not self._wants_records:
            return self._refused()
        self._gathering = True
        failed = self._failed
        try:
            results = gather(
                self._walk(), self._member, self._limits[2:], PartitionFetch, self._ready.empty, failed
            )
        finally:
            self._gathering = False
        return self._refused() + results if failed else results

    def _refused(self) -> list[PartitionFetch]:
        return [PartitionFetch(each, b"", [], each.error) for each in self._failed if each.error]
