"""The classic group protocol, step by step."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from tests.unit.coordinator_log.world import GIVEN_UP_MS, MemoryLog, World, record_log

from sharecore.coordinator.classic import (
    ClassicCoordinator,
    ClassicGroup,
    ClassicLimits,
    ClassicState,
    JoinRequest,
    JoinResult,
    Leaving,
    SyncRequest,
    SyncResult,
)
from sharecore.coordinator.registry import GroupRegistry
from sharecore.errors import ErrorCode, KafkaError

RANGE = (("range", b"r"),)


class Cluster:
    """A coordinator on a topic that survives it."""

    def __init__(
        self,
        *,
        initial_delay_ms: int = 0,
        max_size: int = 100,
        group_bytes_max: int = 8 << 20,
        groups_bytes_max: int = 1 << 20,
    ) -> None:
        self.world = World()
        self.groups_bytes_max = groups_bytes_max
        self.log = MemoryLog()
        self.limits = ClassicLimits(
            initial_delay_ms=initial_delay_ms, max_size=max_size, group_bytes_max=group_bytes_max
        )
        self.restart()

    def restart(self) -> None:
        self.world.crash()
        records = record_log(self.world, [self.log])
        self.registry = GroupRegistry(self.groups_bytes_max)
        self.groups = ClassicCoordinator(self.registry, records, self.limits)
        records.load()
        self.groups.start()

    @property
    def group(self) -> ClassicGroup:
        group = self.registry.get("g")
        assert isinstance(group, ClassicGroup)
        return group

    def join(self, member_id: str = "", **fields: Any) -> list[JoinResult]:
        answers: list[JoinResult] = []
        request = JoinRequest(
            **{
                "group_id": "g",
                "member_id": member_id,
                "instance_id": None,
                "client_id": "c",
                "client_host": "/127.0.0.1",
                "rebalance_timeout_ms": 60_000,
                "session_timeout_ms": 10_000,
                "protocol_type": "consumer",
                "protocols": RANGE,
                **fields,
            }
        )
        self.groups.join(request, answers.append)
        self.world.run(GIVEN_UP_MS if self.log.failing else 0)
        return answers

    def sync(
        self, joined: JoinResult, assignments: dict[str, bytes] | None = None, **fields: Any
    ) -> list[SyncResult]:
        answers: list[SyncResult] = []
        request = SyncRequest(
            **{
                "group_id": "g",
                "member_id": joined.member_id,
                "instance_id": None,
                "generation": joined.generation,
                "protocol_type": "consumer",
                "protocol": "range",
                "assignments": assignments or {},
                **fields,
            }
        )
        self.groups.sync(request, answers.append)
        self.world.run(GIVEN_UP_MS if self.log.failing else 0)
        return answers

    def stable_pair(self) -> tuple[JoinResult, JoinResult]:
        """Return a leader and a follower with their assignments."""
        leader = self.join()[0]
        waiting = self.join()
        rejoined = self.join(leader.member_id)
        first, second = rejoined[0], waiting[0]
        assert first.generation == second.generation == 2
        waits = self.sync(second)
        assert waits == []
        synced = self.sync(first, {first.member_id: b"A", second.member_id: b"B"})
        assert (synced[0].assignment, waits[0].assignment) == (b"A", b"B")
        return first, second

    def heartbeat(self, joined: JoinResult) -> None:
        self.groups.heartbeat("g", joined.member_id, None, joined.generation)


def refusal(call: Any, *args: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call(*args)
    return refused.value.code


def test_the_first_member_leads_and_assigns() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    assert leader.leader == follower.leader == leader.member_id
    assert leader.protocol == "range"
    assert [member[0] for member in leader.members] == [leader.member_id, follower.member_id]
    assert follower.members == ()
    assert cluster.group.state is ClassicState.STABLE
    cluster.heartbeat(leader)


def test_a_member_without_an_id_is_given_one_to_come_back_with() -> None:
    cluster = Cluster()
    answer = cluster.join(must_return=True)[0]
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    joined = cluster.join(answer.member_id, must_return=True)[0]
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 1)
    lost = cluster.join(must_return=True)[0]
    cluster.world.run(10_000)
    assert cluster.join(lost.member_id)[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_group_waits_for_others() -> None:
    cluster = Cluster(initial_delay_ms=3000)
    first = cluster.join()
    cluster.world.run(2000)
    second = cluster.join()
    cluster.world.run(1000)
    assert (first, second) == ([], [])
    cluster.world.run(3000)
    assert first[0].generation == second[0].generation == 1
    assert len(first[0].members) == 2


@pytest.mark.parametrize("initial_delay_ms", [0, 3000])
def test_a_new_group_does_not_wait_for_who_was_given_an_id(initial_delay_ms: int) -> None:
    cluster = Cluster(initial_delay_ms=initial_delay_ms)
    cluster.join(must_return=True)
    joined = cluster.join()
    cluster.world.run(initial_delay_ms)
    assert [each.generation for each in joined] == [1]


def test_a_new_group_waits_no_longer_once_the_last_that_is_missing_is_given_up() -> None:
    cluster = Cluster(initial_delay_ms=30_000)
    cluster.join(must_return=True)
    joined = cluster.join()
    cluster.world.run(10_000)
    assert [each.generation for each in joined] == [1]


def test_members_that_do_not_rejoin_are_left_behind() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    newcomer = cluster.join()
    assert refusal(cluster.heartbeat, leader) is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = cluster.join(leader.member_id)
    for _ in range(7):
        cluster.world.run(9000)
        if not newcomer:
            assert refusal(cluster.heartbeat, follower) is ErrorCode.REBALANCE_IN_PROGRESS
    assert newcomer[0].generation == rejoined[0].generation == 3
    assert follower.member_id not in cluster.group.members


def test_a_silent_member_is_removed_and_the_others_rebalance() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    for _ in range(4):
        cluster.world.run(4000)
        if follower.member_id in cluster.group.members:
            cluster.heartbeat(leader)
    assert refusal(cluster.heartbeat, leader) is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(cluster.group.members) == [leader.member_id]
    assert refusal(cluster.heartbeat, follower) is ErrorCode.UNKNOWN_MEMBER_ID
    assert cluster.join(leader.member_id)[0].generation == 3


def test_leaving_empties_the_group() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    assert cluster.groups.leave("g", [Leaving(follower.member_id)]) == [ErrorCode.NONE]
    assert cluster.groups.leave("g", [Leaving(leader.member_id)]) == [ErrorCode.NONE]
    cluster.world.run()
    assert cluster.group.state is ClassicState.EMPTY
    assert cluster.group.generation == 3
    assert cluster.groups.leave("g", [Leaving(leader.member_id)]) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_group_goes_on_after_a_restart() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    cluster.restart()
    assert cluster.group.state_name == "Stable"
    cluster.heartbeat(leader)
    cluster.heartbeat(follower)
    assert cluster.sync(follower)[0].assignment == b"B"
    cluster.world.run(10_000)
    assert cluster.group.state_name == "Empty"


def test_an_assignment_that_cannot_be_written_is_not_given_out() -> None:
    cluster = Cluster()
    leader = cluster.join()[0]
    cluster.log.failing = True
    answer = cluster.sync(leader, {leader.member_id: b"A"})[0]
    assert answer == SyncResult(ErrorCode.KAFKA_STORAGE_ERROR)
    cluster.log.failing = False
    again = cluster.join(leader.member_id)[0]
    assert cluster.sync(again, {leader.member_id: b"A"})[0].assignment == b"A"


def test_a_group_that_nobody_came_to_the_end_of_is_there_after_a_restart() -> None:
    cluster = Cluster()
    cluster.join(must_return=True)
    cluster.restart()
    assert (cluster.group.state, cluster.group.generation) == (ClassicState.EMPTY, 0)
    assert (cluster.group.protocol_type, cluster.group.is_simple) == ("", True)


def test_members_agree_on_the_protocol_most_like_best() -> None:
    cluster = Cluster(initial_delay_ms=1000)
    both, turned = (("range", b""), ("sticky", b"")), (("sticky", b""), ("range", b""))
    answers = [cluster.join(protocols=each) for each in (both, turned, turned)]
    refused = cluster.join(protocols=(("other", b""),))[0]
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    cluster.world.run(5000)
    assert {answer[0].protocol for answer in answers} == {"sticky"}


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    cluster = Cluster()
    first = cluster.join(instance_id="i")[0]
    cluster.sync(first, {first.member_id: b"A"}, instance_id="i")
    again = cluster.join(instance_id="i", can_skip_assignment=True)[0]
    assert (again.generation, again.skip_assignment, again.leader) == (1, True, again.member_id)
    assert again.member_id != first.member_id
    assert cluster.sync(again, instance_id="i")[0].assignment == b"A"
    assert refusal(cluster.groups.heartbeat, "g", first.member_id, "i", 1) is ErrorCode.FENCED_INSTANCE_ID
    older = cluster.join(instance_id="i")[0]
    assert (older.skip_assignment, older.leader, older.members) == (False, again.member_id, ())


def test_a_static_member_that_is_gone_keeps_its_place_for_its_session() -> None:
    cluster = Cluster()
    first = cluster.join(instance_id="i")[0]
    cluster.sync(first, {first.member_id: b"A"}, instance_id="i")
    cluster.world.run(9000)
    assert cluster.group.static == {"i": first.member_id}
    cluster.world.run(1000)
    assert cluster.group.state is ClassicState.EMPTY


def test_the_group_is_bounded() -> None:
    cluster = Cluster(initial_delay_ms=1000, max_size=2)
    cluster.join()
    cluster.join()
    assert cluster.join()[0].error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_what_members_say_of_their_protocols_is_bounded() -> None:
    cluster = Cluster(initial_delay_ms=1000, group_bytes_max=1500)
    large, small = [("range", bytes(600))], [("range", bytes(300))]
    assert cluster.join(protocols=large) == []
    assert cluster.join(protocols=small) == []
    assert cluster.join(protocols=small)[0].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    for member in list(cluster.group.members.values()):
        cluster.group.remove(member)
    assert cluster.join(protocols=large) == []


def test_the_assignments_of_a_group_are_bounded() -> None:
    """As in Apache Kafka, where the record of such a group is too large for the log."""
    cluster = Cluster(group_bytes_max=1000)
    leader, follower = cluster.stable_pair()
    joined = cluster.join(leader.member_id)
    cluster.join(follower.member_id)
    large = {leader.member_id: bytes(600), follower.member_id: bytes(600)}
    assert cluster.sync(joined[0], large)[0].error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.group.state is ClassicState.PREPARING


def test_members_that_do_not_sync_are_left_behind() -> None:
    cluster = Cluster(initial_delay_ms=1000)
    first, second = cluster.join(), cluster.join()
    cluster.world.run(3000)
    answers = cluster.sync(first[0], {first[0].member_id: b"A"})
    for _ in range(7):
        for joined in (first[0], second[0]):
            with suppress(KafkaError):
                cluster.heartbeat(joined)
        cluster.world.run(9000)
    assert answers[0].assignment == b"A"
    assert second[0].member_id not in cluster.group.members


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_session_time_outs_are_bounded(timeout_ms: int) -> None:
    answer = Cluster().join(session_timeout_ms=timeout_ms)[0]
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_commits_come_from_members_of_the_generation() -> None:
    cluster = Cluster()
    leader, _ = cluster.stable_pair()
    group = cluster.group

    def commit(member_id: str, generation: int) -> None:
        group.check_commit(member_id, None, generation, {}, transactional=False, api_version=9)

    commit(leader.member_id, 2)
    assert refusal(commit, leader.member_id, 1) is ErrorCode.ILLEGAL_GENERATION
    assert refusal(commit, "stranger", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(commit, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_that_a_group_is_empty_is_told_when_it_is_durable() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    told: list[KafkaError | None] = []
    cluster.groups.leave("g", [Leaving(follower.member_id)])
    cluster.groups.when_left("g", told.append)
    assert told == [None], "there is one left, and nothing to write"
    cluster.join(leader.member_id)
    cluster.groups.leave("g", [Leaving(leader.member_id)])
    cluster.groups.when_left("g", told.append)
    assert told == [None]
    cluster.world.run()
    assert told == [None, None]
    cluster.restart()
    assert cluster.group.is_empty
    cluster.groups.when_left("g", told.append)
    assert told == [None] * 3


def test_members_that_leave_together_cost_one_rebalance() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    newcomer = cluster.join()
    again = cluster.join(follower.member_id)
    codes = cluster.groups.leave(
        "g", [Leaving(leader.member_id), Leaving(follower.member_id), Leaving("nobody")]
    )
    cluster.world.run()
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert (again[0].error, again[0].member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert newcomer[0].generation == 3


def test_a_full_group_counts_who_has_joined_again() -> None:
    cluster = Cluster(max_size=2)
    leader, _ = cluster.stable_pair()
    assert cluster.join()[0] == JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED)
    waiting = cluster.join(leader.member_id)
    newcomer = cluster.join()
    assert (waiting, newcomer) == ([], [])


def test_who_finds_no_room_comes_back_as_nobody() -> None:
    cluster = Cluster(max_size=3)
    members = cluster.stable_pair()
    late = cluster.join(must_return=True)[0].member_id
    cluster.join()
    for each in members:
        cluster.join(each.member_id)
    assert cluster.join(late)[0] == JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED)
    cluster.groups.leave("g", [Leaving(members[1].member_id)])
    assert cluster.join(late)[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_again_too_late_has_lost_its_place() -> None:
    cluster = Cluster(max_size=3)
    leader, follower = cluster.stable_pair()
    newcomers = [cluster.join() for _ in range(3)]
    assert newcomers == [[], [], []]
    for late in (leader, follower):
        assert cluster.join(late.member_id)[0].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    cluster.world.run(60_000)
    members = {joined.member_id for answers in newcomers for joined in answers}
    assert set(cluster.group.members) == members
    assert len(members) == 3


def test_of_protocols_that_are_liked_as_well_it_is_apaches() -> None:
    # a Java hash table has "a" before "sticky", and that before "range"
    for mine, yours, chosen in (("range", "sticky", "sticky"), ("sticky", "a", "a")):
        cluster = Cluster()
        first, second = [(mine, b""), (yours, b"")], [(yours, b""), (mine, b"")]
        leader = cluster.join(protocols=first)[0]
        cluster.join(protocols=second)
        assert cluster.join(leader.member_id, protocols=first)[0].protocol == chosen


def test_a_protocol_is_named_once() -> None:
    cluster = Cluster()
    twice = cluster.join(protocols=[("range", b"a"), ("range", b"b")])
    assert twice[0].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert cluster.join()[0].generation == 1


def test_what_a_group_consumes_is_known_from_its_last_generation() -> None:
    metadata = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
    cluster = Cluster()
    assert not cluster.registry.get("g")
    cluster.join(protocols=[("range", metadata)])
    assert cluster.group.is_subscribed("t")
    assert not cluster.group.is_subscribed("other")
    torn = Cluster()
    torn.join(protocols=[("range", metadata[:-1])])
    assert torn.group.is_subscribed("other")  # unknown


def test_the_members_of_all_groups_are_bounded() -> None:
    """sharecore.groups.bytes.max"""
    cluster = Cluster(groups_bytes_max=9_000)
    (joined,) = cluster.join()
    assert joined.error is ErrorCode.NONE
    cluster.join()
    assert len(cluster.group.members) == 2
    (refused,) = cluster.join()
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    (elsewhere,) = cluster.join(group_id="another")
    assert elsewhere.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert cluster.registry.get("another") is None


def test_ids_that_nobody_comes_back_with_are_bounded() -> None:
    cluster = Cluster(groups_bytes_max=100_000)
    codes = [cluster.join(must_return=True, client_id="c" * 1000)[0].error for _ in range(100)]
    assert codes[0] is ErrorCode.MEMBER_ID_REQUIRED
    assert codes[-1] is ErrorCode.GROUP_MAX_SIZE_REACHED
    cluster.world.run(11_000)
    assert cluster.join(must_return=True)[0].error is ErrorCode.MEMBER_ID_REQUIRED
