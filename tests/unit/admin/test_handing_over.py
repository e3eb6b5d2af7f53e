"""A share group moves from one cluster to another, whatever interrupts it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.harness.running import RunningBroker, join_share_group

from sharecore.admin.client import Admin
from sharecore.admin.handing_over import HandedOver, PartitionState, Side, _without_letters, hand_over
from sharecore.admin.model import OffsetChange, ResetPlan, Target
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey

GROUP, TOPIC = "workers", "jobs"
PLACES = [TopicPartition(TOPIC, number) for number in range(3)]
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
STATES = {
    # a gap without state between 12 and 14
    PLACES[0]: PartitionState(5, 5, ((5, 9, AVAILABLE, 2), (10, 11, ACKNOWLEDGED, 1), (15, 15, ARCHIVED, 5))),
    PLACES[1]: PartitionState(0, 0, ((0, 0, AVAILABLE, 1), (1, 1, ARCHIVING, 3))),
    PLACES[2]: PartitionState(7, 0),
}
ALLOWING = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def two_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningBroker, RunningBroker]]:
    made = [RunningBroker(tmp_path_factory.mktemp("broker"), ALLOWING).start() for _ in range(2)]
    topic = {"name": TOPIC, "num_partitions": 3, "replication_factor": 1, "assignments": [], "configs": []}
    for broker in made:
        answer = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=10_000, validate_only=False)
        assert answer.topics[0].error_code == 0
    yield made[0], made[1]
    for broker in made:
        broker.stop()


@pytest.fixture
def brokers(two_brokers: tuple[RunningBroker, RunningBroker]) -> tuple[RunningBroker, RunningBroker]:
    """Two brokers, neither of which has the group."""
    for broker in two_brokers:
        broker.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP])
    return two_brokers


class Interrupted(Exception):
    """The program has ended."""


class CountedTransport(Transport):
    """Connections of a program that ends before its Nth request."""

    def __init__(self, broker: RunningBroker, left: list[int]) -> None:
        super().__init__(read_connection_settings({"bootstrap.servers": f"127.0.0.1:{broker.port}"}))
        self._left = left

    async def coordinator(self, *arguments: Any) -> Any:
        self._count()
        return await super().coordinator(*arguments)

    async def share_coordinator(self, *arguments: Any) -> Any:
        self._count()
        return await super().share_coordinator(*arguments)

    def _count(self) -> None:
        self._left[0] -= 1
        if self._left[0] < 0:
            raise Interrupted


def side(broker: RunningBroker, name: str, requests: list[int]) -> Side:
    return Side(CountedTransport(broker, requests), name)


def move(brokers: tuple[RunningBroker, RunningBroker], requests: int = 10_000, **more: bool) -> HandedOver:
    """Move the group with at most this many requests."""

    async def run() -> HandedOver:
        left = [requests]
        source, target = side(brokers[0], "A", left), side(brokers[1], "B", left)
        try:
            return await hand_over(source, target, GROUP, **more)
        finally:
            await source.admin.close()
            await target.admin.close()

    return asyncio.run(run())


def give(broker: RunningBroker, states: dict[TopicPartition, PartitionState]) -> None:
    """Create the group with these states."""

    async def run() -> None:
        made = side(broker, "it", [10_000])
        changes = [OffsetChange(place, None, state.start_offset) for place, state in states.items()]
        assert not (await made.admin.reset(ResetPlan(GROUP, Target.offset(0), changes))).failed
        for place, state in states.items():
            await made.write(GROUP, place, state)
        await made.admin.close()

    asyncio.run(run())


def states_of(broker: RunningBroker) -> dict[TopicPartition, PartitionState] | None:
    """Return the states of the group; None if the group does not exist."""

    async def run() -> dict[TopicPartition, PartitionState] | None:
        made = side(broker, "it", [10_000])
        try:
            await made.admin.describe(GROUP)
            offsets = await made.admin.offsets(GROUP)
            return {each.partition: await made.read(GROUP, each.partition) for each in offsets}
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return None
        finally:
            await made.admin.close()

    return asyncio.run(run())


def test_all_state_moves_and_the_group_is_gone_where_it_was(
    brokers: tuple[RunningBroker, RunningBroker],
) -> None:
    source, target = brokers
    give(source, STATES)
    assert states_of(source) == STATES
    done = move(brokers)
    assert (done.already, done.states) == (False, STATES)
    assert (states_of(source), states_of(target)) == (None, STATES)
    assert move(brokers).already
    assert move((target, source)).states == STATES
    assert (states_of(source), states_of(target)) == (STATES, None)


@pytest.mark.heavy
def test_a_move_that_was_interrupted_anywhere_goes_on(brokers: tuple[RunningBroker, RunningBroker]) -> None:
    some = {place: STATES[place] for place in PLACES[:2]}
    source, target = brokers
    give(source, some)
    for requests in itertools.count():
        try:
            move(brokers, requests)
            break
        except Interrupted:
            found = states_of(source), states_of(target)
            assert some in found, f"after {requests} requests neither has all: {found}"
    # describing both sides, reading and writing, and deleting take at least this many
    assert requests > 20
    assert (states_of(source), states_of(target)) == (None, some)


def test_a_group_of_the_same_name_that_stands_elsewhere_is_kept(
    brokers: tuple[RunningBroker, RunningBroker],
) -> None:
    source, target = brokers
    give(source, STATES)
    other = {PLACES[0]: PartitionState(6, 0)}
    give(target, other)
    with pytest.raises(KafkaError, match="B has a group workers of its own, which stands elsewhere"):
        move(brokers)
    assert (states_of(source), states_of(target)) == (STATES, other)
    move(brokers, overwrite=True)
    assert (states_of(source), states_of(target)) == (None, STATES)


@pytest.mark.parametrize("where", [0, 1])
def test_a_group_with_members_is_not_moved(brokers: tuple[RunningBroker, RunningBroker], where: int) -> None:
    give(brokers[0], STATES)
    client = brokers[where].connect()
    join_share_group(client, GROUP, "member", [TOPIC])
    with pytest.raises(KafkaError, match=f"group workers has 1 members on {'AB'[where]}: stop them first"):
        move(brokers)
    assert states_of(brokers[0]) == STATES
    client.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=GROUP,
        member_id="member",
        member_epoch=-1,
        subscribed_topic_names=None,
    )


def test_records_that_wait_for_letters_join_their_neighbors_where_there_are_none() -> None:
    state = PartitionState(0, 0, ((0, 0, AVAILABLE, 3), (1, 4, ARCHIVING, 3), (6, 6, ARCHIVING, 2)))
    # as stored by the receiving coordinator, so that the read returns what was written
    assert _without_letters(state).batches == ((0, 4, AVAILABLE, 3), (6, 6, AVAILABLE, 2))


def test_settings_of_the_group_move(brokers: tuple[RunningBroker, RunningBroker]) -> None:
    give(brokers[0], STATES)

    async def configure() -> None:
        async with Admin({"bootstrap.servers": f"127.0.0.1:{brokers[0].port}"}) as admin:
            await admin.alter_configs(GROUP, {"share.delivery.count.limit": 7})

    asyncio.run(configure())
    assert move(brokers).settings == {"share.delivery.count.limit": "7"}

    async def look() -> str | None:
        async with Admin({"bootstrap.servers": f"127.0.0.1:{brokers[1].port}"}) as admin:
            return (await admin.configs(GROUP))["share.delivery.count.limit"].value

    assert asyncio.run(look()) == "7"


def test_who_may_not_read_state_is_told_which_right_it_takes(
    brokers: tuple[RunningBroker, RunningBroker],
) -> None:
    give(brokers[0], STATES)
    denial = {
        "resource_type": 4,
        "resource_name": "kafka-cluster",
        "resource_pattern_type": 3,
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": 9,
        "permission_type": 2,
    }
    # everything else on the cluster stays allowed, so that both entries can be removed
    allowance = denial | {"operation": 2, "permission_type": 3}
    created = brokers[0].ask(ApiKey.CREATE_ACLS, 3, creations=[allowance, denial])
    assert [each.error_code for each in created.results] == [0, 0]
    try:
        with pytest.raises(
            KafkaError, match="the right CLUSTER_ACTION on the cluster is missing on A"
        ) as refused:
            move(brokers)
        assert "--offsets-only" in str(refused.value)
        move(brokers, offsets_only=True)
    finally:
        names = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
        kinds = {"resource_type_filter": 4, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        deleted = brokers[0].ask(ApiKey.DELETE_ACLS, 3, filters=[names | kinds])
        assert len(deleted.filter_results[0].matching_acls) == 2
    assert states_of(brokers[1]) == {
        place: PartitionState(state.start_offset, 0) for place, state in STATES.items()
    }
