"""Server-side assignors."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecore.coordinator.consumer.assignors import AssignorMember, assign_range, assign_uniform

TOPICS = [UUID(int=number) for number in range(1, 5)]


def member(member_id: str, *topics: UUID, instance_id: str | None = None) -> AssignorMember:
    return AssignorMember(member_id, instance_id, frozenset(topics), [])


def test_range_gives_rows_and_the_first_ones_are_longer() -> None:
    one, two = TOPICS[:2]
    members = [member("c", one), member("a", one, two), member("b", one, two, instance_id="z")]
    assert assign_range(members, {one: 7, two: 1}) == {
        "b": {one: frozenset({0, 1, 2}), two: frozenset({0})},
        "a": {one: frozenset({3, 4})},
        "c": {one: frozenset({5, 6})},
    }


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[AssignorMember], dict[UUID, int]]:
    partitions = {topic: draw(st.integers(1, 12)) for topic in TOPICS}
    alike = draw(st.booleans())
    common = draw(st.sets(st.sampled_from(TOPICS), min_size=1))
    members = [
        member(f"m{index}", *(common if alike else draw(st.sets(st.sampled_from(TOPICS)))))
        for index in range(draw(st.integers(1, 8)))
    ]
    return members, partitions


@given(groups())
def test_uniform_is_whole_and_even(drawn: tuple[list[AssignorMember], dict[UUID, int]]) -> None:
    members, partitions = drawn
    target = assign_uniform(members, partitions)
    given_out = [(t, p) for topics in target.values() for t, some in topics.items() for p in some]
    wanted = {topic for each in members for topic in each.topics}
    assert sorted(given_out) == sorted((t, p) for t in wanted for p in range(partitions[t]))
    loads = {each.member_id: sum(map(len, target[each.member_id].values())) for each in members}
    for giver in members:
        for topic in target[giver.member_id]:
            for taker in members:
                if topic in taker.topics:
                    assert loads[giver.member_id] - loads[taker.member_id] <= 1


@pytest.mark.heavy
@given(groups())
def test_uniform_moves_nothing_without_need(drawn: tuple[list[AssignorMember], dict[UUID, int]]) -> None:
    members, partitions = drawn
    first = assign_uniform(members, partitions)
    again = [
        each._replace(assigned=[(t, p) for t, some in first[each.member_id].items() for p in some])
        for each in members
    ]
    assert assign_uniform(again, partitions) == first


def test_uniform_takes_only_what_a_newcomer_is_due() -> None:
    topic = TOPICS[0]
    first = assign_uniform([member("a", topic), member("b", topic)], {topic: 6})
    kept = [
        AssignorMember(name, None, frozenset({topic}), [(topic, p) for p in first[name][topic]])
        for name in ("a", "b")
    ]
    second = assign_uniform([*kept, member("c", topic)], {topic: 6})
    assert {name: len(second[name][topic]) for name in "abc"} == {"a": 2, "b": 2, "c": 2}
    assert all(second[name][topic] < first[name][topic] for name in "ab")
