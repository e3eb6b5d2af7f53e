"""Consumer groups of KIP-848, step by step and at random."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.coordinator.consumer_cluster import A, B, Cluster, Member, refusal

from sharecore.coordinator.classic import ClassicGroup
from sharecore.coordinator.classic.member import ClassicMember
from sharecore.coordinator.consumer import (
    ConsumerGroup,
    Heartbeat,
    MemberState,
)
from sharecore.errors import ErrorCode, KafkaError


def test_a_partition_moves_only_after_it_was_let_go() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    answer = first.join()
    assert (answer.epoch, len(answer.assigned or ())) == (2, 4)
    first.beat()
    answer = second.join()
    assert (answer.epoch, answer.assigned) == (3, set())
    assert cluster.group.state_name == "Reconciling"
    assert len(first.beat().assigned or ()) == 2
    assert first.epoch == 2
    assert second.beat().assigned is None
    assert first.beat().epoch == 3
    answer = second.beat()
    assert len(answer.assigned or ()) == 2
    assert not first.wanted & second.wanted
    assert cluster.group.state_name == "Stable"


def test_leaving_gives_the_partitions_back() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    for member in (first, second, first, first, second):
        member.beat() if member.epoch else member.join()
    first.leave()
    assert len(second.beat().assigned or ()) == 4
    second.leave()
    assert cluster.group.state_name == "Empty"
    assert refusal(second.beat) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_target_waits_for_the_interval() -> None:
    """consumer.assignment.interval.ms"""
    cluster = Cluster(assignment_interval_ms=1000)
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    first.join()
    everything = first.wanted
    second.join()
    first.beat()
    assert first.wanted == everything, "made a moment ago"
    cluster.world.run(1000)
    first.beat()
    assert first.wanted < everything


def test_a_silent_member_is_removed() -> None:
    """consumer.session.timeout.ms"""
    cluster = Cluster(session_timeout_ms=10_000)
    member = Member(cluster, "m1")
    member.join()
    cluster.world.run(9_000)
    member.beat()
    cluster.world.run(9_999)
    assert not cluster.group.is_empty
    cluster.world.run(1)
    assert cluster.group.is_empty


def test_a_member_that_keeps_its_partitions_too_long_is_removed() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    first.join()
    first.beat()
    second.join()
    first.beat()
    for _ in range(3):
        cluster.world.run(10_000)
        second.beat()
    assert list(cluster.group.members) == ["m2"]
    assert len(second.wanted) == 4


def test_epochs_fence() -> None:
    cluster = Cluster()
    member = Member(cluster, "m1")
    member.join()
    epoch = member.epoch
    assert refusal(cluster.heartbeat, "m1", epoch + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal(cluster.heartbeat, "m1", epoch - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal(cluster.heartbeat, "m9", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    again = cluster.heartbeat("m1", 0, rebalance_timeout_ms=1, subscribed_names=["a"], owned=frozenset())
    assert (again.epoch, len(again.assigned or ())) == (epoch, 4)


def test_who_has_heard_of_an_epoch_does_not_come_with_the_one_before() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    second.join("b")
    before = second.epoch
    first.join("a", "b")
    second.join("a")
    fields: dict[str, Any] = {"owned": frozenset()}
    assert cluster.group.members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    cluster.heartbeat("m2", before, **fields)
    second.beat()
    assert refusal(cluster.heartbeat, "m2", before, **fields) is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_answer_that_got_lost_is_given_again() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    first.join()
    first.beat()
    second.join()
    first.beat()
    before = first.epoch
    first.beat()
    assert first.epoch > before
    again = cluster.heartbeat(
        "m1", before, owned=first.owned, subscribed_names=["a"], rebalance_timeout_ms=30_000
    )
    assert (again.epoch, frozenset(again.assigned or ())) == (first.epoch, first.wanted)


def test_groups_go_on_after_a_restart() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1", rack_id="r"), Member(cluster, "m2", instance_id="i")
    for member in (first, second, first, first, second):
        member.beat() if member.epoch else member.join()
    before = cluster.group
    cluster.restart()
    after = cluster.group
    assert (after.epoch, after.target_epoch, after.target) == (
        before.epoch,
        before.target_epoch,
        before.target,
    )
    assert after.holders == before.holders
    assert first.beat().assigned is None
    assert second.beat().epoch == second.epoch
    assert after.epoch == before.epoch
    cluster.world.run(60_000)
    assert after.is_empty


def test_a_group_knows_its_topics_after_a_restart() -> None:
    cluster = Cluster()
    Member(cluster, "m1").join()
    assert cluster.group.is_subscribed("a")
    cluster.restart()
    assert cluster.group.is_subscribed("a"), "its offsets may not be deleted"


def test_a_static_member_comes_back_to_what_it_had() -> None:
    cluster = Cluster()
    first = Member(cluster, "m1", instance_id="i")
    first.join()
    first.beat()
    epoch = cluster.group.epoch
    second = Member(cluster, "m2", instance_id="i")
    assert refusal(second.join) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert refusal(first.join) is ErrorCode.UNRELEASED_INSTANCE_ID, "as long as it has not left"
    first.leave(-2)
    first.join()
    first.leave(-2)
    assert len(second.join().assigned or ()) == 4
    assert cluster.group.epoch == epoch
    assert refusal(first.beat) is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("restarts", [False, True])
def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends(*, restarts: bool) -> None:
    """It may have had partitions to revoke when it left, and leaving revoked them."""
    cluster = Cluster()
    away, other = Member(cluster, "m1", instance_id="i"), Member(cluster, "m2")
    away.join()
    away.beat()
    other.join()
    away.beat()
    assert cluster.group.members["m1"].revoking
    away.leave(-2)
    if restarts:
        cluster.restart()
    for _ in range(4):
        cluster.world.run(10_000)
        other.beat()
    assert cluster.group.static == {"i": "m1"}
    assert len(other.wanted) == 2, "it has what the other one was to let go"
    cluster.world.run(5_000)
    assert cluster.group.static == {}


def test_a_growing_topic_is_noticed() -> None:
    cluster = Cluster()
    member = Member(cluster, "m1")
    member.join()
    cluster.topics.put("a", A, 6)
    assert len(member.beat().assigned or ()) == 6


def test_one_epoch_is_for_who_left_and_for_what_grew() -> None:
    cluster = Cluster()
    stays, goes = Member(cluster, "m1"), Member(cluster, "m2")
    stays.join("a")
    goes.join("a")
    before = cluster.group.epoch
    cluster.topics.put("a", A, 5)
    goes.leave()
    stays.beat()
    assert cluster.group.epoch == before + 1


def test_a_member_that_was_told_to_let_go_has_heard_of_its_epoch() -> None:
    cluster = Cluster()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    second.join("b")
    before = second.epoch
    first.join("b")
    first.leave()
    second.beat()
    first.join("b")
    second.beat()
    assert cluster.group.members["m2"].state is MemberState.UNREVOKED_PARTITIONS
    assert refusal(cluster.heartbeat, "m2", before, owned=frozenset()) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_does_not_come_with_an_instance_that_is_unknown() -> None:
    cluster = Cluster()
    member = Member(cluster, "m1", instance_id="i")
    member.join()
    assert refusal(member.beat, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"owned": None}, ErrorCode.INVALID_REQUEST),
        ({"owned": frozenset({(A, 0)})}, ErrorCode.INVALID_REQUEST),
        ({"lists_topics": True}, ErrorCode.INVALID_REQUEST),
        ({"member_id": " ", "epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "", "epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_names": None}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "other"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"epoch": 5}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_no_member_may_say(fields: dict[str, Any], code: ErrorCode) -> None:
    request = {
        "group_id": "g",
        "member_id": "m",
        "epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_names": ["a"],
        "owned": frozenset(),
        **fields,
    }
    answers: list[object] = []
    assert refusal(Cluster().groups.heartbeat, Heartbeat(**request), answers.append) is code


def test_an_empty_classic_group_gives_its_name() -> None:
    cluster = Cluster()
    classic = ClassicGroup("g", 0)
    cluster.registry.add(classic)
    Member(cluster, "m1").join()
    assert cluster.replaced == [classic]
    assert cluster.group.state_name == "Stable"


def test_who_would_upgrade_a_classic_group_with_members_is_told_that_this_is_not_done() -> None:
    cluster = Cluster()
    classic = ClassicGroup("g", 0)
    cluster.registry.add(classic)
    classic.members["c"] = ClassicMember("c", None, "app", "/127.0.0.1", 1000, 1000, [("range", b"")])
    with pytest.raises(KafkaError, match="because online upgrade is disabled") as refused:
        Member(cluster, "m1").join()
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert cluster.replaced == []


def test_a_failed_write_is_made_up_for() -> None:
    cluster = Cluster()
    member = Member(cluster, "m1")
    cluster.log.failing = True
    assert refusal(member.join) is ErrorCode.KAFKA_STORAGE_ERROR
    cluster.log.failing = False
    member.join()
    cluster.restart()
    assert len(cluster.group.target["m1"][A]) == 4
    member.beat()


def test_topics_that_nobody_wants_any_more_are_let_go_before_others_are_gone() -> None:
    cluster = Cluster()
    member, other = Member(cluster, "m1"), Member(cluster, "m2")
    member.join("a", "b")
    member.beat()
    other.join("a")
    assert {topic for topic, _ in member.beat().assigned or ()} == {A, B}
    assert cluster.group.members["m1"].state is MemberState.UNREVOKED_PARTITIONS
    still = cluster.heartbeat("m1", member.epoch, subscribed_names=["a"])
    assert {topic for topic, _ in still.assigned or ()} == {A}
    assert B in {topic for topic, _ in cluster.group.members["m1"].revoking}


def test_a_member_is_not_given_what_it_has_unsubscribed_from_by_a_target_of_before() -> None:
    cluster = Cluster(assignment_interval_ms=1000)
    member = Member(cluster, "m1")
    member.join("a", "b")
    member.beat()
    assert {topic for topic, _ in member.beat(subscribed_names=["a"]).assigned or ()} == {A}
    member.beat()
    assert {topic for topic, _ in cluster.group.members["m1"].assigned} == {A}
    cluster.world.run(1000)
    member.beat()
    assert cluster.group.state_name == "Stable"


def test_an_operator_removes_members() -> None:
    """LeaveGroup"""
    cluster = Cluster()
    Member(cluster, "m1", instance_id="i").join()
    Member(cluster, "m2").join()
    Member(cluster, "m3").join()
    epoch = cluster.group.epoch
    done: list[KafkaError | None] = []
    named = [("", "i"), ("m2", None), ("m3", "i"), ("", "j"), ("nobody", None), ("", None)]
    codes = cluster.groups.leave(cluster.group, named, done.append)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert codes == [0, 0, ErrorCode.FENCED_INSTANCE_ID, unknown, unknown, unknown]
    cluster.world.run(0)
    assert done == [None]
    cluster.restart()
    assert list(cluster.group.members) == ["m3"]
    assert cluster.group.epoch == epoch + 1


def test_a_full_group_takes_nobody_under_a_new_id() -> None:
    cluster = Cluster(max_size=1)
    member = Member(cluster, "m1", instance_id="i")
    member.join()
    taken = ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refusal(Member(cluster, "m2").join) is taken
    assert refusal(Member(cluster, "m2", instance_id="j").join) is taken
    assert refusal(cluster.heartbeat, "m2", 7) is taken
    assert refusal(Member(cluster, "m2", instance_id="i").join) is ErrorCode.UNRELEASED_INSTANCE_ID
    member.leave(-2)
    Member(cluster, "m2", instance_id="i").join()
    assert cluster.group.members.keys() == {"m2"}


def test_the_subscriptions_of_a_group_are_bounded() -> None:
    """sharecore.group.bytes.max"""
    cluster = Cluster(group_bytes_max=1500)
    Member(cluster, "m1").join("x" * 300)
    second = Member(cluster, "m2")
    assert refusal(second.join, "x" * 300, "y" * 300) is ErrorCode.GROUP_MAX_SIZE_REACHED
    second.join("x" * 300)
    cluster.restart()
    assert refusal(Member(cluster, "m3").join, "x" * 300) is ErrorCode.GROUP_MAX_SIZE_REACHED
    second.beat(subscribed_names=["y" * 400])


# a group with one member and one topic, as a broker wrote it
SEEN = [
    (
        "000500036e657700163344686c7871314b5159696d41684259636a6f426c41",
        "00000000046369640b2f3132372e302e302e3102027401000493e00001000100",
    ),
    ("000300036e6577", "000000000002010008f3e94e1768cb82c1"),
    (
        "000700036e657700163344686c7871314b5159696d41684259636a6f426c41",
        "0000028eae2166f2eb4e209c5ff349890677850300000000000000010000",
    ),
    ("000600036e6577", "000000000002010008000001a1fd04266d"),
    (
        "000800036e657700163344686c7871314b5159696d41684259636a6f426c41",
        "0000000000020000000000028eae2166f2eb4e209c5ff34989067785030000000000000001010009030000000200000002"
        "0100",
    ),
]


def test_records_are_the_bytes_that_kafka_writes() -> None:
    cluster = Cluster()
    pairs = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in SEEN]
    cluster.log.append_local(pairs, now_ms=0)
    cluster.restart()
    group = cluster.registry.get("new")
    assert isinstance(group, ConsumerGroup)
    assert (group.epoch, group.target_epoch, group.state_name) == (2, 2, "Stable")
    (member,) = group.members.values()
    written = [
        group.member_record(member),
        group.epoch_record(),
        *group.target_records(group.target),
        group.current_record(member),
    ]
    assert set(written) == set(pairs)


class Walk(RuleBasedStateMachine):
    """Members join, leave, lag and vanish; topics grow; the broker restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.members: list[Member] = []
        self.count = 0
        self.epoch = 0

    @rule(names=st.sampled_from([("a",), ("b",), ("a", "b")]), assignor=st.sampled_from([None, "range"]))
    def join(self, names: tuple[str, ...], assignor: str | None) -> None:
        self.count += 1
        member = Member(self.cluster, f"m{self.count}", server_assignor=assignor)
        member.join(*names)
        self.members.append(member)

    @rule(index=st.integers(0, 9))
    def beat(self, index: int) -> None:
        if self.members:
            self.members[index % len(self.members)].beat()

    @rule(index=st.integers(0, 9))
    def leave(self, index: int) -> None:
        if self.members:
            self.members.pop(index % len(self.members)).leave()

    @rule()
    def grow(self) -> None:
        self.cluster.topics.put("a", A, self.cluster.topics.topics["a"].partitions + 1)

    @rule()
    def restart(self) -> None:
        self.cluster.restart()

    @rule(index=st.integers(0, 9))
    def vanish(self, index: int) -> None:
        if not self.members:
            return
        gone = self.members.pop(index % len(self.members))
        for _ in range(5):
            self.cluster.world.run(10_000)
            for member in self.members:
                member.beat()
        assert gone.member_id not in self.cluster.group.members

    @rule()
    def settle(self) -> None:
        """After a few rounds every subscribed partition has one member, and each has its assignment."""
        for _ in range(6):
            for member in self.members:
                member.beat()
        if not self.members:
            return
        group = self.cluster.group
        assert group.state_name == "Stable"
        assert all(member.state is MemberState.STABLE for member in group.members.values())
        wanted = {name for member in group.members.values() for name in member.subscribed_names}
        topics = [topic for topic in self.cluster.topics.topics.values() if topic.name in wanted]
        everything = [(topic.topic_id, index) for topic in topics for index in range(topic.partitions)]
        assert sorted(each for member in self.members for each in member.wanted) == sorted(everything)

    @invariant()
    def nobody_has_what_another_has(self) -> None:
        owned = [each for member in self.members for each in member.owned | member.wanted]
        taken = [each for member in self.members for each in member.owned & member.wanted]
        assert len(taken) == len(set(taken)), owned

    @invariant()
    def epochs_grow(self) -> None:
        group = self.cluster.registry.get("g")
        if isinstance(group, ConsumerGroup):
            assert group.epoch >= self.epoch
            self.epoch = group.epoch


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
