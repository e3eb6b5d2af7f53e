"""One share session: its epoch and its partitions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import count, islice
from typing import Protocol
from uuid import UUID

from sharecore._core import next_epoch

SharePartitionId = tuple[UUID, int]
"""Topic id and partition index."""

INITIAL_EPOCH = 0
FINAL_EPOCH = -1


class WaitingFetch(Protocol):
    """A fetch of a session whose answer is not known yet."""

    def abandon(self) -> None:
        """Acquires nothing any more, and is answered with what it has."""


class Ready(Protocol):
    """Those partitions of a session of which a fetch may get something."""

    def add(self, partitions: Iterable[SharePartitionId]) -> None:
        """Partitions have come into the session."""

    def forget(self, partitions: Mapping[SharePartitionId, int]) -> None:
        """Partitions have left the session; with the places that they had."""

    def move(self, before: int, behind: int) -> None:
        """A partition has another place, behind all others."""

    def close(self) -> None:
        """The session has ended."""


class ShareSession:
    """What one member of one group fetches.

    Attributes:
        connection: the one that it was opened over, and ends with.
        epoch: the one that the next request must bring.
        partitions: in the order in which they were added, or last brought records; with numbers that grow in
            that order.
        ready: those that fetches look at; who fetches makes it.
        first_answer: whether the answer to come is the session's first.
        unreported: partitions of which no answer has told yet that they can be fetched: those that were
            added, and those whose last answer was an error.
        touched: partitions of which the member has leased records, in this session or one that it replaced.
        fetches: those that wait; they are abandoned when the session ends.
    """

    __slots__ = (
        "_numbers",
        "connection",
        "epoch",
        "fetches",
        "first_answer",
        "group_id",
        "member_id",
        "partitions",
        "ready",
        "touched",
        "unreported",
    )

    def __init__(self, group_id: str, member_id: str, connection: Hashable) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[SharePartitionId, int] = {}
        self._numbers = count()
        self.ready: Ready | None = None
        self.first_answer = True
        self.unreported: dict[SharePartitionId, None] = {}
        self.touched: set[SharePartitionId] = set()
        self.fetches: dict[WaitingFetch, None] = {}

    @property
    def key(self) -> tuple[str, str]:
        """Group id and member id, by which a session is found."""
        return self.group_id, self.member_id

    @property
    def held(self) -> set[SharePartitionId]:
        """Partitions whose records are released when the session ends. As in Apache Kafka's broker, what was
        leased of others, forgotten or of a session before, stays with the member until its lock runs out.
        """
        return self.touched & self.partitions.keys()

    def add(self, partitions: Iterable[SharePartitionId]) -> None:
        """Puts partitions into the session; those that are in it keep their place."""
        new = [partition for partition in partitions if partition not in self.partitions]
        if not new:
            return
        for partition in new:
            self.partitions[partition] = next(self._numbers)
            self.unreported[partition] = None
        if self.ready is not None:
            self.ready.add(new)

    def forget(self, partitions: Iterable[SharePartitionId]) -> None:
        """Takes partitions out of the session; unknown ones are passed over."""
        gone: dict[SharePartitionId, int] = {}
        for partition in partitions:
            place = self.partitions.pop(partition, None)
            if place is not None:
                gone[partition] = place
                self.unreported.pop(partition, None)
        if self.ready is not None and gone:
            self.ready.forget(gone)

    def report(
        self,
        partitions: Collection[SharePartitionId],
        failed: Iterable[SharePartitionId],
        served: Iterable[SharePartitionId],
    ) -> None:
        """Notes which partitions an answer names.

        The first answer of a session is expected to name each partition that can be fetched, and so is the
        first after a partition was added or had an error; later ones name partitions with records alone.

        Args:
            partitions: those that the answer names.
            failed: those of them that it names with an error.
            served: those of them of which it brings records; from the second answer on they go behind the
                others, as with Kafka.
        """
        if self.first_answer:
            self.first_answer = False
            self.unreported.clear()
        else:
            if self.unreported:
                for partition in partitions:
                    self.unreported.pop(partition, None)
            for partition in served if len(self.partitions) > 1 else ():
                before = self.partitions.pop(partition, None)
                if before is not None:
                    self.partitions[partition] = behind = next(self._numbers)
                    if self.ready is not None:
                        self.ready.move(before, behind)
        for partition in failed:
            if partition in self.partitions:
                self.unreported[partition] = None

    def rotation(self) -> int:
        """The place at which this request begins to serve, for `in_order`.

        It moves by one partition a request, as with Kafka, so that a busy partition cannot keep the others
        from being served.
        """
        places = self.partitions
        if len(places) < 2:
            return 0
        return next(islice(places.values(), (self.epoch - 1) % len(places), None))

    def in_order(self, partitions: Iterable[SharePartitionId], first: int) -> list[SharePartitionId]:
        """Partitions in the order in which a request serves them that begins at the place `first`; those that
        are not in the session (any more) are left out.
        """
        places = self.partitions
        here = [each for each in partitions if each in places]
        if len(here) > 1:
            here.sort(key=lambda each: ((place := places[each]) < first, place))
        return here
