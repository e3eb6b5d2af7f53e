"""Which share partitions of a session may have something: its fetches look at those alone."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, Protocol
from uuid import UUID

from sharecore.errors import KafkaError

SharePartitionId = tuple[UUID, int]


class Partition(Protocol):
    """A share partition's leader."""

    id: SharePartitionId

    def tell(self, interested: ReadySet) -> None:
        """Has somebody told, once, when there may be something to acquire."""

    def tell_no_more(self, interested: ReadySet) -> None:
        """Takes that back."""


class Offered(Protocol):
    """A fetch that waits."""

    def offer(self, partition: Any) -> None:
        """A partition may have something now."""

    def partition_failed(self, partition: Any, error: KafkaError) -> None:
        """A partition is gone."""


class ReadySet:
    """The share partitions of one session that a fetch has to look at.

    One that a fetch finds empty leaves the set, and its leader is asked to tell, once, when that may have
    changed. So a fetch costs by what has something, not by what the session has. Those without a leader, not
    loaded or failed, stay: each fetch tries them again.

    Args:
        partitions: those of the session, as it is at any time.

    Attributes:
        ids: those to look at.
    """

    __slots__ = ("_asked", "_fetches", "_partitions", "ids")

    def __init__(self, partitions: Container[SharePartitionId]) -> None:
        self._partitions = partitions
        self._fetches: dict[Offered, None] = {}
        self._asked: set[Partition] = set()
        self.ids: set[SharePartitionId] = set()

    @property
    def waiting(self) -> bool:
        """Whether a fetch of the session waits."""
        return bool(self._fetches)

    def add(self, partitions: Iterable[SharePartitionId]) -> None:
        """Partitions have come into the session."""
        self.ids.update(partitions)

    def forget(self, partitions: Iterable[SharePartitionId]) -> None:
        """Partitions have left the session."""
        self.ids.difference_update(partitions)

    def close(self) -> None:
        """The session has ended."""
        for partition in self._asked:
            partition.tell_no_more(self)
        self._asked.clear()

    def empty(self, partition: Partition) -> None:
        """A fetch has found nothing in a partition."""
        self.ids.discard(partition.id)
        self.ask(partition)

    def ask(self, partition: Partition) -> None:
        """Has a partition tell when it may have something."""
        self._asked.add(partition)
        partition.tell(self)

    def wait(self, fetch: Offered) -> None:
        """A fetch waits for what partitions tell."""
        self._fetches[fetch] = None

    def stop_waiting(self, fetch: Offered) -> None:
        """It does no longer."""
        self._fetches.pop(fetch, None)

    def told(self, partition: Partition) -> None:
        """A partition may have something; it tells once, and is asked again where a fetch goes on waiting."""
        self._asked.discard(partition)
        if partition.id not in self._partitions:
            return
        self.ids.add(partition.id)
        for fetch in list(self._fetches):
            fetch.offer(partition)
        if self._fetches and partition.id in self._partitions:
            self.ask(partition)

    def failed(self, partition: Partition, error: KafkaError) -> None:
        """A partition's leader has ended."""
        self._asked.discard(partition)
        if partition.id in self._partitions:
            self.ids.add(partition.id)
            for fetch in list(self._fetches):
                fetch.partition_failed(partition, error)
