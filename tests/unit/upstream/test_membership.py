"""A member of a classic group: the meaning of each response, and how long its membership is certain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream import GroupMember, Membership, Upstream
from sharecore.upstream.apis import SPOKEN


class Told:
    """A listener that records, and assigns each member its own metadata."""

    def __init__(self) -> None:
        self.assignments: list[tuple[int, bytes]] = []
        self.errors: list[ErrorCode] = []
        self.version = 0
        self.failing = 0

    def metadata(self) -> bytes:
        self.version += 1
        return b"%d" % self.version

    def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
        if self.failing:
            self.failing -= 1
            raise RuntimeError("no plan")
        return {member.member_id: member.metadata for member in members}

    def assigned(self, generation: int, assignment: bytes) -> None:
        self.assignments.append((generation, assignment))

    def lost(self, error: KafkaError) -> None:
        self.errors.append(error.code)


async def joined(
    cluster: Cluster, *, request_timeout_ms: int = 1_000, **more: Any
) -> tuple[Upstream, Membership, Told]:
    upstream = cluster.upstream(request_timeout_ms=request_timeout_ms)
    await upstream.start()
    told = Told()
    member = Membership(upstream, "group", told, **more)
    member.start()
    await asyncio.sleep(0.1)
    assert told.assignments
    return upstream, member, told


async def ended(upstream: Upstream, member: Membership) -> None:
    await member.close()
    await upstream.close()


def silence_ms(upstream: Upstream, member: Membership) -> int:
    assert member.lease_from_ms is not None
    return upstream.clock.monotonic_ms() - member.lease_from_ms


@in_virtual_time
async def test_a_new_member_joins_with_the_id_that_it_is_given_and_beats() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    assert [body.member_id for body in cluster.bodies(ApiKey.JOIN_GROUP)] == ["", "member"]
    assert [(each.protocol_type, each.protocols[0].name) for each in cluster.bodies(ApiKey.JOIN_GROUP)] == [
        ("sharecore", "slots-v1")
    ] * 2
    assert told.assignments == [(1, b"2")]
    assert (member.member_id, member.generation, member.leads) == ("member", 1, True)
    await asyncio.sleep(30)
    assert len(cluster.bodies(ApiKey.HEARTBEAT)) == 11
    assert silence_ms(upstream, member) < 3_000
    await member.leave()
    (left,) = cluster.bodies(ApiKey.LEAVE_GROUP)
    assert [each.member_id for each in left.members] == ["member"]
    assert member.lease_from_ms is None
    await upstream.close()


@in_virtual_time
async def test_a_static_member_does_not_leave_before_a_session_is_over() -> None:
    """The process whose place it may have taken trusts its last heartbeat until then."""
    for seconds, leaves in ((0, False), (9, False), (11, True)):
        cluster = Cluster()
        upstream, member, _ = await joined(cluster, instance_id="node-1")
        member.rejoin()
        await asyncio.sleep(seconds)
        await member.leave()
        assert bool(cluster.bodies(ApiKey.LEAVE_GROUP)) == leaves, f"after {seconds} s"
        assert member.lease_from_ms is None
        await upstream.close()


@in_virtual_time
async def test_a_rebalance_for_others_does_not_end_the_lease() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    cluster.says[ApiKey.HEARTBEAT] += [{"error_code": 27}] * 3
    cluster.says[ApiKey.JOIN_GROUP].append(8.0)
    for _ in range(130):
        await asyncio.sleep(0.1)
        assert silence_ms(upstream, member) < 3_500
    assert [generation for generation, _ in told.assignments] == [1, 2]
    links = {each.link for each in cluster.asked if each.api is ApiKey.HEARTBEAT}
    assert links.isdisjoint({each.link for each in cluster.asked if each.api is ApiKey.JOIN_GROUP})
    assert told.errors == []
    await asyncio.sleep(20)
    assert len(told.assignments) == 2
    await ended(upstream, member)


@in_virtual_time
async def test_a_join_that_never_ends_lets_the_lease_run_out_before_the_coordinator_gives_up() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster, rebalance_ms=20_000)
    began = asyncio.get_running_loop().time()
    cluster.says[ApiKey.HEARTBEAT] += [{"error_code": 27}] * 100
    cluster.says[ApiKey.JOIN_GROUP] += [None] * 100
    leased = 0.0
    for _ in range(400):
        if silence_ms(upstream, member) < 7_000:
            leased = asyncio.get_running_loop().time() - began
        await asyncio.sleep(0.1)
    assert 12 < leased <= 20
    assert told.errors == []
    await ended(upstream, member)


@in_virtual_time
async def test_an_answer_that_crossed_with_a_join_changes_nothing() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    member.rejoin()
    cluster.says[ApiKey.JOIN_GROUP].append(7.0)
    cluster.says[ApiKey.HEARTBEAT] += [{"error_code": 22}, {"error_code": 25}]
    await asyncio.sleep(10)
    assert told.errors == []
    assert [generation for generation, _ in told.assignments] == [1, 2]
    await ended(upstream, member)


@pytest.mark.parametrize(("code", "lost"), [(25, True), (22, False)])
@in_virtual_time
async def test_a_member_that_the_coordinator_does_not_know_joins_again(code: int, lost: bool) -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    cluster.says[ApiKey.HEARTBEAT].append({"error_code": code})
    await asyncio.sleep(4)
    assert told.errors == ([ErrorCode.UNKNOWN_MEMBER_ID] if lost else [])
    assert [generation for generation, _ in told.assignments] == [1, 2]
    assert [body.member_id for body in cluster.bodies(ApiKey.JOIN_GROUP)][2:] == (
        ["", "member"] if lost else ["member"]
    )
    await ended(upstream, member)


@in_virtual_time
async def test_a_coordinator_that_was_away_and_still_knows_the_member_leaves_it_its_place() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    cluster.brokers[0].stop()
    await asyncio.sleep(14)
    assert silence_ms(upstream, member) >= 13_000
    cluster.brokers[0].start()
    await asyncio.sleep(3)
    assert silence_ms(upstream, member) < 3_500
    assert told.errors == []
    assert [generation for generation, _ in told.assignments] == [1]
    await ended(upstream, member)


@in_virtual_time
async def test_a_member_waits_while_another_process_has_its_instance_id() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster, instance_id="node-1")
    assert cluster.bodies(ApiKey.JOIN_GROUP)[0].group_instance_id == "node-1"
    cluster.members["group"] = [("another", "node-1"), ("third", "node-3")]
    cluster.says[ApiKey.HEARTBEAT].append({"error_code": 82})
    await asyncio.sleep(60)
    assert told.errors == [ErrorCode.FENCED_INSTANCE_ID]
    assert "stop one of them" in str(member.error)
    assert len(told.assignments) == 1, "it has taken the place from the other"
    asked = len(cluster.bodies(ApiKey.DESCRIBE_GROUPS))
    assert 6 <= asked <= 15, "not in growing pauses"
    cluster.members["group"] = [("third", "node-3")]
    await asyncio.sleep(11)
    assert (len(told.assignments), member.error) == (2, None)
    assert silence_ms(upstream, member) < 3_500
    await ended(upstream, member)


@pytest.mark.parametrize("code", [30, 23, 24, 26, 35, 58])
@pytest.mark.parametrize("api", [ApiKey.HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
@in_virtual_time
async def test_a_refusal_that_passes_does_not_end_a_member(api: ApiKey, code: int) -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    before = len(cluster.asked)
    cluster.says[api] += [{"error_code": code}] * 4
    if api is not ApiKey.HEARTBEAT:
        member.rejoin()
    await asyncio.sleep(3.5)
    if api is not ApiKey.HEARTBEAT:
        assert member.error is not None
        assert member.error.code == code
        assert member.lease_from_ms is None
    await asyncio.sleep(60)
    assert len([each for each in cluster.asked[before:] if each.api is ApiKey.JOIN_GROUP]) < 15
    assert told.errors
    assert member.error is None
    assert silence_ms(upstream, member) < 3_500
    await ended(upstream, member)


@in_virtual_time
async def test_a_member_that_is_refused_from_the_start_joins_once_it_is_let() -> None:
    cluster = Cluster()
    cluster.says[ApiKey.JOIN_GROUP] += [{"error_code": 30}] * 5
    upstream = cluster.upstream()
    await upstream.start()
    told = Told()
    member = Membership(upstream, "group", told)
    member.start()
    await asyncio.sleep(5)
    assert "give the user of this node Read on group group" in str(member.error)
    assert told.assignments == []
    await asyncio.sleep(40)
    assert (len(told.assignments), told.errors, member.error) == (1, [], None)
    await ended(upstream, member)


@in_virtual_time
async def test_a_cause_is_logged_once_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    """Read on the topic of committed offsets is missing: heartbeats do not count."""
    cluster = Cluster(versions=SPOKEN)
    upstream, member, _ = await joined(cluster, heartbeat_ms=1_000, confirmed_by="state")
    cluster.says[ApiKey.OFFSET_COMMIT] += [committed(29)] * 30
    with caplog.at_level("INFO"):
        await asyncio.sleep(10)
        assert member.problem is not None
        said = [each for each in caplog.records if "give the user of this node Read" in each.getMessage()]
        assert [each.levelname for each in said] == ["WARNING"]
        await asyncio.sleep(60)
    assert member.problem is None
    assert [each for each in caplog.records if ": resolved" in each.getMessage()]
    await ended(upstream, member)


@in_virtual_time
async def test_what_a_listener_raises_is_tried_again() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster)
    told.failing = 1
    member.rejoin()
    await asyncio.sleep(5)
    assert [generation for generation, _ in told.assignments] == [1, 3]
    await ended(upstream, member)


@in_virtual_time
async def test_an_answer_that_comes_after_the_place_was_lost_gives_no_lease() -> None:
    cluster = Cluster()
    upstream, member, told = await joined(cluster, session_ms=6_000, heartbeat_ms=3_000)
    cluster.says[ApiKey.HEARTBEAT].append(0.9)
    await asyncio.sleep(3.2)
    cluster.says[ApiKey.JOIN_GROUP] += [{"error_code": 25}] + [{"error_code": 15}] * 20
    member.rejoin()
    await asyncio.sleep(1.5)
    assert told.errors == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert member.lease_from_ms is None
    await ended(upstream, member)


def committed(code: int) -> dict[str, Any]:
    return {"topics": [{"name": "state", "partitions": [{"partition_index": 0, "error_code": code}]}]}


@in_virtual_time
async def test_heartbeats_count_that_the_coordinator_has_written_behind() -> None:
    cluster = Cluster(versions=SPOKEN)
    upstream, member, _ = await joined(cluster, heartbeat_ms=1_000, confirmed_by="state")
    for _ in range(100):
        await asyncio.sleep(0.1)
        assert silence_ms(upstream, member) < 1_500
    commits = cluster.bodies(ApiKey.OFFSET_COMMIT)
    assert len(commits) == len(cluster.bodies(ApiKey.HEARTBEAT)) == 11
    (topic,) = commits[-1].topics
    assert (commits[-1].member_id, commits[-1].generation_id_or_member_epoch) == ("member", 1)
    assert (topic.name, [each.partition_index for each in topic.partitions]) == ("state", [0])
    await ended(upstream, member)


@pytest.mark.parametrize("answer", [committed(15), committed(7), None])
@in_virtual_time
async def test_a_coordinator_that_was_replaced_and_still_answers_keeps_no_lease_fresh(answer: Any) -> None:
    """It still answers heartbeats, but no replica follows it: its writes time out."""
    cluster = Cluster(versions=SPOKEN)
    upstream, member, told = await joined(cluster, heartbeat_ms=1_000, confirmed_by="state")
    cluster.says[ApiKey.OFFSET_COMMIT] += [answer] * 100
    before = len(cluster.bodies(ApiKey.HEARTBEAT))
    await asyncio.sleep(9)
    assert silence_ms(upstream, member) > 8_000
    assert len(cluster.bodies(ApiKey.HEARTBEAT)) > before + 2
    assert told.errors == []
    cluster.says[ApiKey.OFFSET_COMMIT].clear()
    await asyncio.sleep(3)
    assert silence_ms(upstream, member) < 1_500
    await ended(upstream, member)


@pytest.mark.parametrize("code", [27, 22, 25])
@in_virtual_time
async def test_a_commit_between_two_generations_says_nothing(code: int) -> None:
    cluster = Cluster(versions=SPOKEN)
    upstream, member, told = await joined(cluster, heartbeat_ms=1_000, confirmed_by="state")
    cluster.says[ApiKey.OFFSET_COMMIT] += [committed(code)] * 3
    for _ in range(50):
        await asyncio.sleep(0.1)
        assert silence_ms(upstream, member) < 4_500
    assert told.errors == []
    assert [generation for generation, _ in told.assignments] == [1]
    links = {each.link for each in cluster.asked if each.api is ApiKey.HEARTBEAT}
    assert len(links) == 1
    await ended(upstream, member)


@in_virtual_time
async def test_heartbeats_alone_count_where_nothing_can_be_committed() -> None:
    cluster = Cluster()
    upstream, member, _ = await joined(cluster, confirmed_by="state")
    await asyncio.sleep(20)
    assert silence_ms(upstream, member) < 3_500
    await ended(upstream, member)


@in_virtual_time
async def test_a_coordinator_that_was_replaced_and_does_not_know_is_left_at_once() -> None:
    cluster = Cluster(nodes=3, versions=SPOKEN)
    upstream, member, told = await joined(
        cluster, request_timeout_ms=30_000, confirmed_by="state", heartbeat_ms=1_000
    )
    cluster.lose_sight(0)
    await asyncio.sleep(5)
    assert silence_ms(upstream, member) > 4_000
    cluster.coordinators["group"] = 1
    await asyncio.sleep(3)
    assert silence_ms(upstream, member) <= 2_000
    await asyncio.sleep(10)
    assert silence_ms(upstream, member) <= 2_000
    assert told.errors == []
    assert len(told.assignments) == 1
    await ended(upstream, member)


@in_virtual_time
async def test_a_coordinator_that_is_slow_is_waited_for() -> None:
    cluster = Cluster(nodes=3, versions=SPOKEN)
    upstream, member, _ = await joined(
        cluster, request_timeout_ms=30_000, confirmed_by="state", heartbeat_ms=1_000
    )
    cluster.says[ApiKey.OFFSET_COMMIT].append(4.5)
    await asyncio.sleep(8)
    assert silence_ms(upstream, member) <= 2_000
    beats = [each for each in cluster.asked if each.api is ApiKey.HEARTBEAT]
    assert len({each.link for each in beats}) == 1
    await ended(upstream, member)


@in_virtual_time
async def test_a_static_member_whose_own_join_comes_late_is_not_another_process() -> None:
    cluster = Cluster(versions=SPOKEN)
    upstream, member, told = await joined(cluster, instance_id="node", rebalance_ms=3_000)
    cluster.says[ApiKey.JOIN_GROUP] += [None, {"error_code": 82}]
    member.rejoin()
    await asyncio.sleep(8)
    assert member.error is None
    assert told.errors == [ErrorCode.FENCED_INSTANCE_ID]
    assert [each.member_id for each in cluster.bodies(ApiKey.JOIN_GROUP)][-1] == ""
    assert len(told.assignments) == 2
    # now there is another one
    await asyncio.sleep(10)
    cluster.members["group"] = [("another", "node")]
    cluster.says[ApiKey.HEARTBEAT].append({"error_code": 82})
    await asyncio.sleep(4)
    assert member.error is not None
    assert member.error.code is ErrorCode.FENCED_INSTANCE_ID
    await ended(upstream, member)


@in_virtual_time
async def test_a_member_id_that_the_next_coordinator_never_heard_of_is_given_up() -> None:
    cluster = Cluster(versions=SPOKEN)
    upstream, member, told = await joined(cluster, instance_id="node")
    cluster.says[ApiKey.JOIN_GROUP].append({"error_code": 25})
    cluster.says[ApiKey.SYNC_GROUP].append({"error_code": 16})
    cluster.says[ApiKey.HEARTBEAT].append({"error_code": 27})
    await asyncio.sleep(3)
    cluster.says[ApiKey.JOIN_GROUP].append({"error_code": 82})
    member.rejoin()
    await asyncio.sleep(5)
    assert member.error is None
    assert len(told.assignments) == 2
    await ended(upstream, member)
