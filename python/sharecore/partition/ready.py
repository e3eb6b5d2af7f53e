"""Which share partitions of a session may have something: its fetches look at those alone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

from sharecore.errors import KafkaError

SharePartitionId = tuple[UUID, int]


class Partition(Protocol):
    """A share partition's leader."""

    id: SharePartitionId

    def tell(self, interested: ReadySet) -> None:
        """Has somebody told, once, when there may be something to acquire, or when the leader has ended."""

    def tell_end(self, interested: ReadySet) -> None:
        """Has somebody told when the leader has ended."""

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

    They stand in the order of the session, so that a fetch can begin anywhere and end where it has enough.
    One that a fetch finds empty leaves the set, and its leader is asked to tell, once, when that may have
    changed. So a fetch costs by what it looks at, not by what the session has.

    Args:
        places: the partitions of the session, as it is at any time, with numbers that give their order.

    Attributes:
        unknown: those without a leader that is loaded; each fetch tries them again.
    """

    __slots__ = ("_fetches", "_known", "_leaders", "_order", "_places", "unknown")

    def __init__(self, places: Mapping[SharePartitionId, int]) -> None:
        self._places = places
        self._fetches: dict[Offered, None] = {}
        self._known: set[Partition] = set()
        self._order: list[int] = []
        self._leaders: dict[int, Any] = {}
        self.unknown: set[SharePartitionId] = set(places)

    @property
    def waiting(self) -> bool:
        """Whether a fetch of the session waits."""
        return bool(self._fetches)

    def add(self, partitions: Iterable[SharePartitionId]) -> None:
        """Partitions have come into the session."""
        self.unknown.update(partitions)

    def forget(self, partitions: Mapping[SharePartitionId, int]) -> None:
        """Partitions have left the session; with the places that they had."""
        self.unknown.difference_update(partitions)
        for place in partitions.values():
            leader = self._take_out(place)
            if leader is not None:
                self._let_go(leader)

    def move(self, before: int, behind: int) -> None:
        """A partition has another place, behind all others."""
        leader = self._take_out(before)
        if leader is not None:
            self._order.append(behind)
            self._leaders[behind] = leader

    def close(self) -> None:
        """The session has ended."""
        for partition in self._known:
            partition.tell_no_more(self)
        self._known.clear()

    def walk(self, first: int) -> list[Any]:
        """The leaders of the set as it is now, from a place on and round."""
        order, leaders = self._order, self._leaders
        if len(order) > 1:
            start = bisect_left(order, first)
            order = order[start:] + order[:start]
        return [leaders[place] for place in order]

    def put(self, partition: Partition) -> None:
        """A leader is loaded, or may have something."""
        self.unknown.discard(partition.id)
        place = self._places.get(partition.id)
        if place is None:
            return
        if place not in self._leaders:
            insort(self._order, place)
            self._leaders[place] = partition
        self._known.add(partition)
        partition.tell_end(self)

    def empty(self, partition: Partition) -> None:
        """A fetch has found nothing in a partition."""
        self._take_out(self._places.get(partition.id))
        self.ask(partition)

    def ask(self, partition: Partition) -> None:
        """Has a partition tell when it may have something."""
        self._known.add(partition)
        partition.tell(self)

    def wait(self, fetch: Offered) -> None:
        """A fetch waits for what partitions tell."""
        self._fetches[fetch] = None

    def stop_waiting(self, fetch: Offered) -> None:
        """It does no longer."""
        self._fetches.pop(fetch, None)

    def told(self, partition: Partition) -> None:
        """A partition may have something; it tells once, and is asked again where a fetch goes on waiting."""
        if partition.id not in self._places:
            self._let_go(partition)
            return
        self.put(partition)
        for fetch in list(self._fetches):
            fetch.offer(partition)
        if self._fetches and partition.id in self._places:
            self.ask(partition)

    def failed(self, partition: Partition, error: KafkaError) -> None:
        """A partition's leader has ended."""
        self._known.discard(partition)
        place = self._places.get(partition.id)
        if place is not None:
            self._take_out(place)
            self.unknown.add(partition.id)
            for fetch in list(self._fetches):
                fetch.partition_failed(partition, error)

    def _take_out(self, place: int | None) -> Any:
        if place is None or (leader := self._leaders.pop(place, None)) is None:
            return None
        del self._order[bisect_left(self._order, place)]
        return leader

    def _let_go(self, partition: Partition) -> None:
        self._known.discard(partition)
        partition.tell_no_more(self)
