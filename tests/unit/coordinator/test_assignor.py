from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecore.coordinator.share.assignor import AssignorMember, assign

# The assignments of Apache Kafka 4.3.1's SimpleAssignor for these groups, each being the previous one with
# changed members and topics. Topic n has the ID 100 + n. Assignments that it keeps for topics without
# subscribers in a mixed group are left out: that is a defect.
CASES = [json.loads(line) for line in Path(__file__).with_name("assignments.jsonl").read_text().splitlines()]


def topic(number: str | int) -> UUID:
    return UUID(int=100 + int(number))


@pytest.mark.parametrize("case", CASES)
def test_the_assignment_is_the_one_that_kafka_makes(case: dict[str, Any]) -> None:
    members = [
        AssignorMember(
            member,
            [topic(number) for number in topics],
            {topic(number): some for number, some in current.items()},
        )
        for member, topics, current in case["members"]
    ]
    assignable = {topic(number): range(count) for number, count in case["topics"].items()}
    wanted = {
        member: {topic(number): tuple(sorted(some)) for number, some in topics.items() if some}
        for member, topics in case["assignment"].items()
    }
    assert assign(members, assignable) == wanted


@pytest.mark.heavy
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    wants=st.lists(st.sets(st.integers(0, 3), min_size=1), max_size=12),
    each_topic=st.booleans(),
)
def test_every_wanted_partition_has_a_member_and_nobody_has_what_it_does_not_want(
    counts: list[int], wants: list[set[int]], each_topic: bool
) -> None:
    assignable = {topic(number): range(count) for number, count in enumerate(counts)}
    members = [
        AssignorMember(f"m{number}", [topic(each) for each in sorted(want)], {})
        for number, want in enumerate(wants)
    ]
    for _ in range(2):
        result = assign(members, assignable, each_topic=each_topic)
        assert set(result) == {member.member_id for member in members}
        given_out = {
            (each, index) for topics in result.values() for each, some in topics.items() for index in some
        }
        wanted = {number for want in wants for number in want if number < len(counts)}
        assert given_out == {(topic(number), index) for number in wanted for index in range(counts[number])}
        for member in members:
            assert result[member.member_id].keys() <= set(member.topics)
            assert all(len(set(some)) == len(some) for some in result[member.member_id].values())
            if each_topic:
                assert result[member.member_id].keys() == {
                    each for each in member.topics if assignable.get(each)
                }
        members = [member._replace(current=result[member.member_id]) for member in members]
        again = assign(members, assignable, each_topic=each_topic)
        assert again == {m.member_id: m.current for m in members}, "it settles"


def test_a_large_group_is_assigned_in_a_moment() -> None:
    assignable = {topic(1): range(1000)}
    members = [AssignorMember(f"m{number}", [topic(1)], {}) for number in range(2000)]
    began = time.process_time()
    first = assign(members, assignable)
    again = assign([m._replace(current=first[m.member_id]) for m in members[:-1]], assignable)
    assert time.process_time() - began < 3
    assert all(again.values())
