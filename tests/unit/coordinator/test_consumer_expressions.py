"""Members of consumer groups that subscribe by regular expression."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordinator.consumer_cluster import A, B, Cluster, Member, refusal

from sharecore.coordinator.consumer import HeartbeatAnswer
from sharecore.errors import ErrorCode, KafkaError

_JOINING: dict[str, Any] = {"rebalance_timeout_ms": 1, "owned": frozenset()}


def _topics(answer: HeartbeatAnswer) -> set[UUID]:
    return {topic for topic, _ in answer.assigned or ()}


def test_a_member_may_subscribe_to_an_expression() -> None:
    """It is resolved after the heartbeat that brings it; the member sends another one soon."""
    cluster = Cluster()
    joined = cluster.heartbeat("m1", 0, subscribed_regex="[ab]", **_JOINING)
    assert (joined.epoch, joined.assigned, joined.heartbeat_ms) == (1, set(), 10)
    told = cluster.heartbeat("m1", 1)
    assert (told.epoch, _topics(told), told.heartbeat_ms) == (2, {A, B}, 5000)
    cluster.topics.put("c", UUID(int=3), 1)
    assert cluster.heartbeat("m1", 2).assigned is None
    assert cluster.group.epoch == 2
    changed = cluster.heartbeat("m1", 2, subscribed_regex="c")
    assert (changed.epoch, changed.assigned, changed.heartbeat_ms) == (2, set(), 10)
    told = cluster.heartbeat("m1", 2, owned=frozenset())
    assert (told.epoch, _topics(told)) == (3, {UUID(int=3)})


def test_an_expression_that_another_member_has_is_known_at_once() -> None:
    cluster = Cluster()
    cluster.heartbeat("m1", 0, subscribed_regex="[ab]", **_JOINING)
    joined = cluster.heartbeat("m2", 0, subscribed_regex="[ab]", **_JOINING)
    assert (joined.epoch, len(joined.assigned or ())) == (3, 3)
    assert joined.heartbeat_ms == 5000


def test_a_topic_that_comes_is_found_by_an_expression() -> None:
    cluster = Cluster()
    cluster.heartbeat("m1", 0, subscribed_regex="[abc]", **_JOINING)
    assert cluster.heartbeat("m1", 1).epoch == 2
    cluster.topics.put("c", UUID(int=3), 1)
    assert cluster.heartbeat("m1", 2).heartbeat_ms == 10
    told = cluster.heartbeat("m1", 2)
    assert (told.epoch, _topics(told)) == (3, {A, B, UUID(int=3)})


def test_an_expression_finds_what_its_member_may_know_of() -> None:
    """group.consumer.regex.refresh.interval.ms"""
    cluster = Cluster(expressions_refresh_ms=20_000)
    allowed = {"a"}
    may: dict[str, Any] = {"may_describe": allowed.__contains__}
    cluster.heartbeat("m1", 0, subscribed_regex=".*", **_JOINING, **may)
    told = cluster.heartbeat("m1", 1, **may)
    assert _topics(told) == {A}
    allowed.add("b")
    cluster.world.run(19_999)
    cluster.heartbeat("m1", 2, **may)
    assert cluster.group.epoch == 2
    cluster.world.run(1)
    cluster.heartbeat("m1", 2, **may)
    assert _topics(cluster.heartbeat("m1", 2, **may)) == {A, B}


def test_what_expressions_match_outlives_a_restart() -> None:
    cluster = Cluster()
    may: dict[str, Any] = {"may_describe": {"a"}.__contains__}
    cluster.heartbeat("m1", 0, subscribed_regex=".*", **_JOINING, **may)
    cluster.heartbeat("m2", 0, subscribed_regex="b|x", **_JOINING, **may)
    epoch = cluster.heartbeat("m1", 1, **may).epoch
    cluster.heartbeat("m2", -1)
    before = cluster.group.epoch
    cluster.restart()
    assert cluster.group.expressions == {".*": {"a"}}
    cluster.heartbeat("m1", epoch, **may)
    assert cluster.group.epoch == before


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        ("m1", 2, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("m2", 0, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("m2", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m1", 9, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_who_a_member_is_comes_before_its_expression(member: str, epoch: int, code: ErrorCode) -> None:
    cluster = Cluster()
    Member(cluster, "m1").join()
    assert refusal(cluster.heartbeat, member, epoch, subscribed_regex="(", **_JOINING) is code
    assert cluster.group.members.keys() == {"m1"}


LONG = "|".join(f"topic-{number}" for number in range(200)) + "|[ab]"
"""An expression that would block the event loop."""


def test_a_long_expression_is_looked_up_beside_the_event_loop() -> None:
    cluster = Cluster()
    joined = cluster.heartbeat("m1", 0, subscribed_regex=LONG, **_JOINING)
    assert (joined.epoch, joined.assigned, joined.heartbeat_ms) == (1, set(), 10)
    assert cluster.heartbeat("m1", 1).heartbeat_ms == 10
    (look,) = cluster.apart
    look()
    told = cluster.heartbeat("m1", 1)
    assert (told.epoch, _topics(told), told.heartbeat_ms) == (2, {A, B}, 5000)
    cluster.restart()
    assert cluster.group.expressions == {LONG: frozenset("ab")}


def test_what_was_looked_up_for_nobody_is_forgotten() -> None:
    cluster = Cluster()
    cluster.heartbeat("m1", 0, subscribed_regex=LONG, **_JOINING)
    cluster.heartbeat("m1", 1, subscribed_regex="b")
    cluster.apart.pop()()
    assert cluster.group.expressions == {}
    cluster.heartbeat("m1", 1)
    assert cluster.group.expressions == {"b": frozenset("b")}


def test_a_group_that_has_gone_is_not_looked_up() -> None:
    cluster = Cluster()
    cluster.heartbeat("m1", 0, subscribed_regex=LONG, **_JOINING)
    cluster.heartbeat("m1", -1)
    cluster.groups.delete(cluster.group)
    before = cluster.log.end_offset
    cluster.apart.pop()()
    cluster.world.run()
    assert cluster.log.end_offset == before


def test_expressions_of_a_group_are_bounded() -> None:
    """sharecore.group.bytes.max"""
    cluster = Cluster(group_bytes_max=3 << 16)
    for number in range(3):
        cluster.heartbeat(f"m{number}", 0, subscribed_regex=f"a{number}", **_JOINING)
    cluster.heartbeat("m3", 0, subscribed_regex="a2", **_JOINING)
    fourth = Member(cluster, "m4", subscribed_regex="a4")
    assert refusal(fourth.join) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_expression_was_looked_at_before() -> None:
    cluster = Cluster()
    fault = {"subscribed_regex": "a", "expression_fault": "it takes too long"}
    with pytest.raises(KafkaError) as refused:
        cluster.heartbeat("m1", 0, **_JOINING, **fault)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "it takes too long" in refused.value.message
