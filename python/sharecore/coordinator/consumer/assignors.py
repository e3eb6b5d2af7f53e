"""Kafka's server-side assignors.

`uniform` balances partition counts with few moves. `range` assigns adjacent partitions of each topic, and the
same ones of topics with equal partition counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from sharecore.coordinator.consumer.member import Assignment, Partition


class AssignorMember(NamedTuple):
    """A member as seen by assignors.

    Args:
        topics: the existing topics of its subscription.
        assigned: its partitions in the last assignment.
    """

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    assigned: Collection[Partition]


Assignor = Callable[[Collection[AssignorMember], Mapping[UUID, int]], dict[str, Assignment]]
"""From members and partition counts to partitions by member id."""


def assign_range(
    members: Collection[AssignorMember], partitions: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """Split each topic's partitions into consecutive ranges, one per subscriber, longer ones first."""
    target: dict[str, dict[UUID, frozenset[int]]] = {member.member_id: {} for member in members}
    # static members keep their positions, whatever their member ids
    ordered = sorted(
        members, key=lambda each: (each.instance_id is None, each.instance_id or "", each.member_id)
    )
    for topic, count in partitions.items():
        subscribers = [member for member in ordered if topic in member.topics]
        if not subscribers:
            continue
        size, longer = divmod(count, len(subscribers))
        start = 0
        for index, member in enumerate(subscribers):
            end = start + size + (index < longer)
            if end > start:
                target[member.member_id][topic] = frozenset(range(start, end))
            start = end
    return dict(target)


def assign_uniform(
    members: Collection[AssignorMember], partitions: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """Balance partition counts as far as subscriptions allow; current owners keep partitions."""
    owned = _kept(members, partitions)
    taken = set().union(*owned.values()) if owned else set()
    wanted = {topic for member in members for topic in member.topics}
    free = [
        (topic, partition)
        for topic, count in partitions.items()
        if topic in wanted
        for partition in range(count)
        if (topic, partition) not in taken
    ]
    if len({member.topics for member in members}) == 1:
        _even_out_alike(owned, free)
    else:
        _even_out_unlike(members, owned, free)
    return {member_id: _by_topic(some) for member_id, some in owned.items()}


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def _kept(members: Collection[AssignorMember], partitions: Mapping[UUID, int]) -> dict[str, list[Partition]]:
    """Return the partitions that members keep; of two owners, the first one keeps a partition."""
    taken: set[Partition] = set()
    kept: dict[str, list[Partition]] = {}
    for member in members:
        own = kept[member.member_id] = []
        for each in sorted(member.assigned):
            topic, partition = each
            if topic in member.topics and partition < partitions.get(topic, 0) and each not in taken:
                taken.add(each)
                own.append(each)
    return kept


def _even_out_alike(owned: dict[str, list[Partition]], free: list[Partition]) -> None:
    """Balance members with equal subscriptions: equal counts, with one more for some."""
    total = sum(map(len, owned.values())) + len(free)
    quota, longer = divmod(total, len(owned))
    for some in owned.values():
        keep = quota
        if len(some) > quota and longer:
            keep, longer = quota + 1, longer - 1
        free += some[keep:]
        del some[keep:]
    rest = iter(free)
    for some in owned.values():
        while len(some) < quota:
            some.append(next(rest))
    short = [some for some in owned.values() if len(some) == quota]
    for some, each in zip(short, rest, strict=False):
        some.append(each)


def _even_out_unlike(
    members: Collection[AssignorMember], owned: dict[str, list[Partition]], free: list[Partition]
) -> None:
    """Balance different subscriptions: free partitions go to the least loaded, then some move."""
    subscribers: dict[UUID, list[str]] = {}
    for member in members:
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(member.member_id)
    free.sort(key=lambda each: (len(subscribers[each[0]]), each))
    for each in free:
        lightest = min(subscribers[each[0]], key=lambda member_id: (len(owned[member_id]), member_id))
        owned[lightest].append(each)
    # terminates, as each move reduces the imbalance
    moved = True
    while moved:
        moved = False
        for member_id in sorted(owned, key=lambda each: (-len(owned[each]), each)):
            while (move := _best_move(member_id, owned, subscribers)) is not None:
                each, lighter = move
                owned[member_id].remove(each)
                owned[lighter].append(each)
                moved = True


def _best_move(
    member_id: str, owned: dict[str, list[Partition]], subscribers: dict[UUID, list[str]]
) -> tuple[Partition, str] | None:
    """Return a partition to move to a member with at least two fewer."""
    best: tuple[int, Partition, str] | None = None
    for topic in {each[0] for each in owned[member_id]}:
        lighter = min(subscribers[topic], key=lambda each: (len(owned[each]), each))
        gain = len(owned[member_id]) - len(owned[lighter])
        if gain >= 2 and (best is None or gain > best[0]):
            last = max(each for each in owned[member_id] if each[0] == topic)
            best = (gain, last, lighter)
    return None if best is None else (best[1], best[2])


def _by_topic(partitions: Collection[Partition]) -> Assignment:
    topics: dict[UUID, set[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, set()).add(partition)
    return {topic: frozenset(some) for topic, some in topics.items()}
