"""Our assignors on the groups that Apache's were asked about."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from uuid import UUID

from tests.differential.assignors.apache import ApacheAssignors
from tests.differential.assignors.groups import Group, Held, Life

from sharecore.coordinator.consumer import assignors as consumer
from sharecore.coordinator.share import assignor as simple

STEPS = 8


def check(apache: ApacheAssignors, assignor: str, seed: int) -> Iterator[tuple[Group, str | None]]:
    """One group's life: what it looked like at each step, and what is wrong with our assignment then.

    `simple` and `range` have to decide as Apache does. With `uniform`, which of equal members gets which
    partition follows from the order of hash tables there: it has to give out the same, as evenly and
    with as few moves as Apache where all want the same topics, and otherwise so that no move makes it more
    even.
    """
    random = Random(seed)
    life = Life(random, alike=random.random() < 0.5)
    for group in life.steps(STEPS):
        theirs = apache.assign(assignor, group)
        if assignor == "simple":
            theirs = _without_leftovers(group, theirs)
            ours = _simple(group)
        else:
            ours = _consumer(assignor, group)
        if assignor == "uniform":
            wrong = _compare_uniform(group, theirs, ours)
        else:
            wrong = None if ours == theirs else f"Apache: {theirs}\nours:   {ours}"
        yield group, wrong
        life.told(theirs)


def _without_leftovers(group: Group, assignment: dict[str, Held]) -> dict[str, Held]:
    """Without what Apache leaves with members of a mixed group for topics that nobody wants any more."""
    wanted = {number for member in group.members for number in member.topics}
    return {
        member_id: {number: some for number, some in held.items() if number in wanted}
        for member_id, held in assignment.items()
    }


def _topic(number: int) -> UUID:
    return UUID(int=100 + number)


def _simple(group: Group) -> dict[str, Held]:
    members = [
        simple.AssignorMember(
            member.member_id,
            [_topic(number) for number in member.topics],
            {_topic(number): some for number, some in member.current.items()},
        )
        for member in group.members
    ]
    assigned = simple.assign(
        members, {_topic(number): range(count) for number, count in group.topics.items()}
    )
    return {
        member_id: {topic_id.int - 100: list(some) for topic_id, some in topics.items()}
        for member_id, topics in assigned.items()
    }


def _consumer(assignor: str, group: Group) -> dict[str, Held]:
    members = [
        consumer.AssignorMember(
            member.member_id,
            member.instance_id,
            frozenset(map(_topic, member.topics)),
            [(_topic(number), index) for number, some in member.current.items() for index in some],
        )
        for member in group.members
    ]
    target = consumer.ASSIGNORS[assignor](members, {_topic(number): n for number, n in group.topics.items()})
    return {
        member_id: {topic_id.int - 100: sorted(some) for topic_id, some in sorted(topics.items())}
        for member_id, topics in target.items()
    }


def _compare_uniform(group: Group, theirs: dict[str, Held], ours: dict[str, Held]) -> str | None:
    both = f"Apache: {theirs}\nours:   {ours}"
    if sorted(_partitions(theirs)) != sorted(_partitions(ours)):
        return f"not the same partitions are given out\n{both}"
    if len({tuple(member.topics) for member in group.members}) == 1:
        if sorted(_loads(theirs).values()) != sorted(_loads(ours).values()):
            return f"not as even\n{both}"
        if _moved(group, ours) > _moved(group, theirs):
            return f"{_moved(group, ours)} partitions moved, Apache moves {_moved(group, theirs)}\n{both}"
        return None
    loads = _loads(ours)
    for member in group.members:
        for giver, held in ours.items():
            if loads[giver] > loads[member.member_id] + 1 and held.keys() & set(member.topics):
                return f"{giver} has more than {member.member_id}, who wants it too\n{both}"
    return None


def _partitions(assignment: dict[str, Held]) -> list[tuple[int, int]]:
    return [(number, each) for held in assignment.values() for number, some in held.items() for each in some]


def _loads(assignment: dict[str, Held]) -> dict[str, int]:
    return {member_id: sum(map(len, held.values())) for member_id, held in assignment.items()}


def _moved(group: Group, assignment: dict[str, Held]) -> int:
    """Partitions that their members, who still want them, have lost."""
    lost = 0
    for member in group.members:
        held = assignment[member.member_id]
        for number, some in member.current.items():
            if number in member.topics and number in group.topics:
                lost += len(set(some) - set(held.get(number, ())))
    return lost
