"""One share session: its epoch and its partitions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol
from uuid import UUID

SharePartitionId = tuple[UUID, int]
"""Topic id and partition index."""

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1


def next_epoch(epoch: int) -> int:
    """The epoch that follows; past the largest int32 it starts again at 1, since 0 would open a new
    session.
    """
    return 1 if epoch >= _EPOCH_MAX else epoch + 1


class WaitingFetch(Protocol):
    """A fetch of a session whose answer is not known yet."""

    def abandon(self) -> None:
        """Acquires nothing any more, and is answered with what it has."""


class ShareSession:
    """What one member of one group fetches over one connection.

    Attributes:
        epoch: the one that the next request must bring.
        partitions: in the order in which they were added.
        touched: partitions of which the member has leased records.
        fetches: those that wait; they are abandoned when the session ends.
    """

    __slots__ = ("connection", "epoch", "fetches", "group_id", "member_id", "partitions", "touched")

    def __init__(self, group_id: str, member_id: str, connection: Hashable) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[SharePartitionId, None] = {}
        self.touched: set[SharePartitionId] = set()
        self.fetches: dict[WaitingFetch, None] = {}

    @property
    def key(self) -> tuple[str, str]:
        """What a session is found by: group id and member id."""
        return self.group_id, self.member_id

    def add(self, partitions: Iterable[SharePartitionId]) -> None:
        """Puts partitions into the session; those that are in it keep their place."""
        for partition in partitions:
            self.partitions[partition] = None

    def forget(self, partitions: Iterable[SharePartitionId]) -> None:
        """Takes partitions out of the session; unknown ones are passed over."""
        for partition in partitions:
            self.partitions.pop(partition, None)

    def rotation(self) -> list[SharePartitionId]:
        """The partitions in the order in which this request serves them.

        The start moves by one a request, so that a busy partition cannot keep the others from being served.
        """
        order = list(self.partitions)
        if len(order) > 1:
            start = self.epoch % len(order)
            order = order[start:] + order[:start]
        return order
