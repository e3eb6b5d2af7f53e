"""The simple assignor of share groups (KIP-932, "Share group assignor").

It balances members per partition and partitions per member, to within one, and keeps current assignments
where possible.

Where the result depends on iteration order, the order is Apache's, down to that of its hash tables. Given the
same group and previous assignment, both coordinators compute the same assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import NamedTuple, TypeVar
from uuid import UUID

T = TypeVar("T")
TopicPartition = tuple[int, int]
"""A topic's number within the group, and a partition: UUIDs are slow to hash."""

_MASK32 = 0xFFFFFFFF


class AssignorMember(NamedTuple):
    """A member as seen by the assignor: its subscribed topics and current partitions."""

    member_id: str
    topics: Sequence[UUID]
    current: Mapping[UUID, Sequence[int]]


def assign(
    members: Sequence[AssignorMember], assignable: Mapping[UUID, Sequence[int]], *, each_topic: bool = False
) -> dict[str, dict[UUID, tuple[int, ...]]]:
    """Return the target assignment.

    Args:
        members: the members in numbering order.
        assignable: partitions that may be assigned, by topic.
        each_topic: whether every member gets partitions of each of its topics. Apache does so only where
            subscriptions differ.

    Returns:
        ascending partitions by topic and member id; every member has an entry.
    """
    topics = list(dict.fromkeys(topic for member in members for topic in member.topics))
    numbers = {topic: number for number, topic in enumerate(topics)}
    wants = [[numbers[topic] for topic in member.topics] for member in members]
    current = [
        [
            (numbers[topic], index)
            for topic, some in member.current.items()
            if topic in numbers
            for index in some
        ]
        for member in members
    ]
    partitions = [
        [(number, index) for index in assignable.get(topic, ())] for topic, number in numbers.items()
    ]
    result: list[list[TopicPartition]] = [[] for _ in members]
    if not each_topic and len({frozenset(some) for some in wants}) == 1:
        hashes = [_folded(topic) for topic in topics]
        wanted = [each for number in wants[0] for each in partitions[number]]
        everybody = range(len(members))
        _merge(
            result,
            everybody,
            _Balance(current, wanted, lambda each: _spread(hashes[each[0]] + each[1])).solve(),
        )
    else:
        # each topic is shared among its subscribers
        wanting: dict[int, list[int]] = {}
        for member, some in enumerate(wants):
            for number in some:
                wanting.setdefault(number, []).append(member)
        for number, some in wanting.items():
            held = [current[member] for member in some]
            _merge(result, some, _Balance(held, partitions[number], _index_hash, some).solve())
    return {member.member_id: _by_topic(some, topics) for member, some in zip(members, result, strict=True)}


def _merge(
    result: list[list[TopicPartition]], members: Sequence[int], solved: Iterable[Iterable[TopicPartition]]
) -> None:
    for member, some in zip(members, solved, strict=True):
        result[member] += some


def _by_topic(partitions: list[TopicPartition], topics: Sequence[UUID]) -> dict[UUID, tuple[int, ...]]:
    partitions.sort()
    return {
        topics[number]: tuple(index for _, index in some)
        for number, some in groupby(partitions, key=itemgetter(0))
    }


class _Balance:
    """Partitions to balance among members that all subscribe to them."""

    def __init__(
        self,
        current: Sequence[Sequence[TopicPartition]],
        partitions: list[TopicPartition],
        partition_hash: Callable[[TopicPartition], int],
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.partitions = partitions
        self.hash = partition_hash
        self.numbers = range(len(current)) if numbers is None else numbers
        targets = set(partitions)
        self.assigned: list[dict[TopicPartition, None]] = [
            {each: None for each in held if each in targets} for held in current
        ]
        self.owners: dict[TopicPartition, list[int]] = {}
        for number, owned in enumerate(self.assigned):
            for each in owned:
                self.owners.setdefault(each, []).append(number)
        self.sharing = dict.fromkeys(partitions, 0)
        for each, numbers in self.owners.items():
            self.sharing[each] = len(numbers)

    def solve(self) -> list[dict[TopicPartition, None]]:
        """Return the partitions of each member, by member number."""
        if not self.partitions:
            return [{} for _ in self.assigned]
        if len(self.assigned) == 1:
            return [dict.fromkeys(self.partitions)]
        self.sharing_wanted = -(-len(self.assigned) // len(self.partitions))
        share = self.sharing_wanted * len(self.partitions) / len(self.assigned)
        self.count_wanted = [
            ceil(share * (number + 1)) - ceil(share * number) for number in range(len(self.assigned))
        ]
        inserted = dict.fromkeys(self.owners) | dict.fromkeys(self.partitions)
        order = _in_hash_order(
            reversed(inserted), self.hash, _capacity(int((len(self.partitions) + 1) / 0.75 + 1))
        )
        self._revoke_from_members()
        self._revoke_from_partitions(order)
        self._fill([each for each in order if self.sharing[each] < self.sharing_wanted])
        return self.assigned

    def _revoke_from_members(self) -> None:
        for number, owned in enumerate(self.assigned):
            excess = len(owned) - self.count_wanted[number]
            if excess > 0:
                for each in _in_hash_order(owned, self.hash, _grown(len(owned)))[:excess]:
                    self._revoke(number, each)

    def _revoke_from_partitions(self, order: list[TopicPartition]) -> None:
        for each in order:
            excess = self.sharing[each] - self.sharing_wanted
            if excess > 0:
                owners = self.owners[each]
                for number in _in_hash_order(
                    owners, lambda number: _spread(self.numbers[number]), _grown(len(owners))
                ):
                    if excess and each in self.assigned[number]:
                        self._revoke(number, each)
                        excess -= 1

    def _revoke(self, number: int, each: TopicPartition) -> None:
        del self.assigned[number][each]
        self.sharing[each] -= 1

    def _fill(self, lacking: list[TopicPartition]) -> None:
        """Assign partitions round-robin to members below their quota, until a round assigns none.

        As in Apache, a member may be given the same partition twice, and then ends up below its quota.
        """
        counts = [len(owned) for owned in self.assigned]
        room = [number for number, count in enumerate(counts) if count < self.count_wanted[number]]
        new: list[dict[TopicPartition, None]] = [{} for _ in self.assigned]
        turn, taken = 0, False
        for each in lacking:
            while self.sharing[each] < self.sharing_wanted and room:
                if turn == len(room):
                    if not taken:
                        break
                    turn, taken = 0, False
                number = room[turn]
                if each in self.assigned[number]:
                    turn += 1
                    continue
                new[number][each] = None
                taken = True
                self.sharing[each] += 1
                counts[number] += 1
                if counts[number] < self.count_wanted[number]:
                    turn += 1
                else:
                    del room[turn]
        for owned, more in zip(self.assigned, new, strict=True):
            owned.update(more)


def _in_hash_order(items: Iterable[T], spread_hash: Callable[[T], int], capacity: int) -> list[T]:
    """Return the items in the iteration order of a Java hash table; items of a bucket keep their order."""
    mask = capacity - 1
    return sorted(items, key=lambda item: spread_hash(item) & mask)


def _folded(topic: UUID) -> int:
    """Return a topic's part of the hash of its partitions."""
    folded = (topic.int >> 64) ^ topic.int
    return 31 * ((folded >> 32) ^ folded)


def _index_hash(partition: TopicPartition) -> int:
    return _spread(partition[1])


def _spread(value: int) -> int:
    value &= _MASK32
    return value ^ value >> 16


def _capacity(wanted: int) -> int:
    """Return the power of two that a Java hash table uses for a requested capacity."""
    return 1 << (wanted - 1).bit_length()


def _grown(size: int) -> int:
    """Return the capacity of a Java hash table that has grown to this size."""
    capacity = 16
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity
