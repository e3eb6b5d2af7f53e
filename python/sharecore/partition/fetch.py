"""One ShareFetch that waits for records of several share partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore._core import PartitionFetch, ShareLook
from sharecore.waiting import CallLater, DelayedFetch

if TYPE_CHECKING:
    from sharecore.errors import KafkaError
    from sharecore.partition.leader import SharePartition


class WaitingShareFetch(DelayedFetch[list[PartitionFetch]]):
    """Gathers records for one member once there are enough.

    It ends when at least `min_bytes` were acquired, when a partition that it waits for has failed, or when
    its time is over; nothing is acquired before that, so that no lease runs while the client waits. Records
    that have to be read from the disk first are waited for, whatever the time.

    Args:
        look: where it looks; what becomes ready in its session while it waits is looked at, too.
        ended: called once with what was acquired.
    """

    def __init__(
        self, look: ShareLook, call_later: CallLater, ended: Callable[[list[PartitionFetch]], object]
    ) -> None:
        super().__init__(call_later, ended)
        self._look = look
        self._has_loaded = False

    def look(self, *, late: bool) -> list[PartitionFetch] | None:
        found = self._look.look(late)
        if found is None and late:
            self._read_on()
        return found

    def watch(self) -> None:
        self._look.watch(self, self._loaded)
        if self.is_late:
            self._read_on()

    def unwatch(self) -> None:
        self._look.unwatch(self)

    def _read_on(self) -> None:
        """Looks again when what is being read from the disk is in memory."""
        for partition in self._look.reading:
            partition.when_read(self.again)

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
        if self._look.looks_at(partition):
            self.again()

    def partition_failed(self, partition: SharePartition, error: KafkaError) -> None:
        """A partition of the session is gone."""
        if self.waiting:
            found = self._look.fail(partition)
            if found is not None:
                self.end(found)
