"""Share groups over the wire: membership, administration, and the share-state calls."""

from __future__ import annotations

import itertools
import time
from typing import Any
from uuid import UUID

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker, join_share_group
from tests.unit.broker.share_member import Member, acquired, errors

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import SharePartitionKey

_groups = itertools.count()


@pytest.fixture
def group() -> str:
    return f"share-{next(_groups)}"


@pytest.fixture
def topic_id(broker: RunningBroker, topic: str) -> UUID:
    asked = [{"topic_id": None, "name": topic}]
    found: UUID = broker.ask(ApiKey.METADATA, 12, topics=asked).topics[0].topic_id
    return found


def produce(broker: RunningBroker, topic: str, count: int) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch([b"x"] * count)}]}]
    answer = broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
    assert answer.responses[0].partition_responses[0].error_code == 0


def heartbeat(client: Client, group: str, member: str = "m", epoch: int = 0, topics: Any = None) -> Any:
    return client.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=topics,
    )


def describe(broker: RunningBroker, *groups: str, operations: bool = False) -> list[Any]:
    answer = broker.ask(
        ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=groups, include_authorized_operations=operations
    )
    found: list[Any] = answer.groups
    return found


def listed(broker: RunningBroker, version: int = 5, **filters: Any) -> list[str]:
    answer = broker.ask(ApiKey.LIST_GROUPS, version, **filters)
    return [group.group_id for group in answer.groups]


def offsets(broker: RunningBroker, group: str, topics: Any = None) -> dict[tuple[str, int], tuple[int, int]]:
    asked = [{"group_id": group, "topics": topics}]
    (found,) = broker.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked).groups
    assert found.error_code == 0
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag)
        for topic in found.topics
        for each in topic.partitions
    }


def alter(broker: RunningBroker, group: str, *wanted: tuple[str, int, int]) -> Any:
    topics = [
        {"topic_name": name, "partitions": [{"partition_index": index, "start_offset": offset}]}
        for name, index, offset in wanted
    ]
    return broker.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=topics)


def test_a_group_lives_from_the_first_heartbeat_to_its_deletion(
    broker: RunningBroker, topic: str, topic_id: UUID, group: str
) -> None:
    client = broker.connect("client-7")
    joined = join_share_group(client, group, "m", [topic])
    assert (joined.error_code, joined.member_id, joined.heartbeat_interval_ms) == (0, "m", 5000)
    assigned = [(each.topic_id, list(each.partitions)) for each in joined.assignment.topic_partitions]
    assert assigned == [(topic_id, [0, 1])]
    assert heartbeat(client, group, epoch=joined.member_epoch).assignment is None
    (found,) = describe(broker, group, operations=True)
    assert (found.group_state, found.assignor_name, found.authorized_operations) == ("Stable", "simple", 3400)
    assert found.group_epoch == found.assignment_epoch == joined.member_epoch
    (member,) = found.members
    assert (member.client_id, member.client_host) == ("client-7", "/127.0.0.1")
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [
        (topic, [0, 1])
    ]
    assert broker.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[group]).results[0].error_code == (
        ErrorCode.NON_EMPTY_GROUP
    )
    left = heartbeat(client, group, epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert heartbeat(client, group, epoch=-1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert describe(broker, group)[0].group_state == "Empty"
    deleted = broker.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[group, "nobody", ""]).results
    assert [each.error_code for each in deleted] == [
        0,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    assert describe(broker, group)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert group not in listed(broker)


def test_groups_are_listed_by_state_and_type(broker: RunningBroker, topic: str, group: str) -> None:
    heartbeat(broker.connect(), group, topics=[topic])
    for version in range(6):
        assert group in listed(broker, version)
    assert group in listed(broker, states_filter=["STABLE"], types_filter=["Share"])
    assert group not in listed(broker, states_filter=["empty"])
    assert group not in listed(broker, types_filter=["classic", "consumer"])


def test_a_refused_heartbeat_says_why(broker: RunningBroker, topic: str, group: str) -> None:
    client = broker.connect()
    refused = heartbeat(client, "", topics=[topic])
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "GroupId can't be empty.",
    )
    assert heartbeat(client, group, epoch=3).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_set_described_and_deleted(
    broker: RunningBroker, topic: str, topic_id: UUID, group: str
) -> None:
    produce(broker, topic, 20)
    client = broker.connect()
    join_share_group(client, group, "m", [topic])
    assert offsets(broker, group) == {(topic, 0): (-1, -1), (topic, 1): (-1, -1)}
    assert alter(broker, group, (topic, 0, 3)).error_code == ErrorCode.NON_EMPTY_GROUP
    deletion = {"group_id": group, "topics": [{"topic_name": topic}, {"topic_name": "nowhere"}]}
    assert broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, **deletion).error_code == (
        ErrorCode.NON_EMPTY_GROUP
    )
    heartbeat(client, group, epoch=-1)
    altered = alter(broker, group, (topic, 0, 3), ("nowhere", 0, 0))
    assert altered.error_code == 0
    outcomes = {each.topic_name: (each.topic_id, each.partitions[0].error_code) for each in altered.responses}
    assert outcomes == {
        topic: (topic_id, 0),
        "nowhere": (None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    assert alter(broker, group, (topic, 9, 3)).responses[0].partitions[0].error_code == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert alter(broker, group, (topic, 1, -3)).responses[0].partitions[0].error_code == (
        ErrorCode.INVALID_REQUEST
    )
    assert offsets(broker, group)[topic, 0] == (3, 17)
    asked = [{"topic_name": topic, "partitions": [0, 7]}, {"topic_name": "nowhere", "partitions": [0]}]
    assert offsets(broker, group, asked) == {
        (topic, 0): (3, 17),
        (topic, 7): (-1, -1),
        ("nowhere", 0): (-1, -1),
    }
    deleted = broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, **deletion)
    assert [each.error_code for each in deleted.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert deleted.responses[1].error_message == "This server does not host this topic-partition."
    assert offsets(broker, group) == {}
    again = broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, **deletion)
    assert again.responses[0].error_message == "There is no offset information to delete."
    refused = [{"topic_name": topic}, {"topic_name": topic}]
    twice = broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=refused)
    assert len(twice.responses) == 2, "as often as it was asked for, as with Kafka"
    altered = alter(broker, group, (topic, 0, 3), (topic, 0, 4))
    assert [each.partition_index for each in altered.responses[0].partitions] == [0, 0]
    assert offsets(broker, group)[topic, 0][0] == 4


def test_state_gets_the_epoch_of_its_group_as_with_kafka(
    broker: RunningBroker, topic: str, topic_id: UUID, group: str
) -> None:
    def altered(start_offset: int) -> tuple[int, int]:
        assert alter(broker, group, (topic, 0, start_offset)).responses[0].partitions[0].error_code == 0
        asked = [{"topic_id": topic_id, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        answer = broker.ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, group_id=group, topics=asked)
        (found,) = answer.results[0].partitions
        return found.state_epoch, found.start_offset

    assert [altered(3), altered(4)] == [(1, 3), (1, 4)]
    client = broker.connect()
    join_share_group(client, group, "m", [topic])
    heartbeat(client, group, epoch=-1)
    assert [altered(1), altered(2)] == [(3, 1), (3, 2)]


def test_offsets_of_a_group_that_is_not_there(broker: RunningBroker, topic: str, group: str) -> None:
    assert offsets(broker, group) == {}
    assert alter(broker, "", (topic, 0, 3)).error_code == ErrorCode.INVALID_GROUP_ID
    deletion = {"group_id": group, "topics": [{"topic_name": topic}]}
    assert broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, **deletion).error_code == (
        ErrorCode.GROUP_ID_NOT_FOUND
    )
    nobody = broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id="", topics=[])
    assert nobody.error_code == ErrorCode.INVALID_GROUP_ID
    assert alter(broker, group, (topic, 0, 3)).error_code == 0
    assert describe(broker, group)[0].group_state == "Empty"


def test_a_group_of_another_type_has_no_share_offsets(broker: RunningBroker, topic: str, group: str) -> None:
    commit = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    broker.ask(ApiKey.OFFSET_COMMIT, 8, group_id=group, generation_id_or_member_epoch=-1, topics=commit)
    assert describe(broker, group)[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert heartbeat(broker.connect(), group, topics=[topic]).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    asked = [{"group_id": group, "topics": None}]
    (found,) = broker.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked).groups
    assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert broker.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[group]).results[0].error_code == 0


class StateCalls:
    """The share-state calls on one share partition."""

    def __init__(self, broker: RunningBroker, key: SharePartitionKey) -> None:
        self.broker = broker
        self.key = key

    def call(self, api_key: ApiKey, version: int = 0, **fields: Any) -> Any:
        """One call's result for the partition."""
        topics = [
            {"topic_id": self.key.topic_id, "partitions": [{"partition": self.key.partition, **fields}]}
        ]
        answer = self.broker.ask(api_key, version, group_id=self.key.group_id, topics=topics)
        return answer.results[0].partitions[0]

    def write(self, state_epoch: int, start_offset: int, *batches: tuple[int, int, int, int]) -> Any:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        return self.call(
            ApiKey.WRITE_SHARE_GROUP_STATE,
            1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=4,
            state_batches=[dict(zip(names, each, strict=True)) for each in batches],
        )


def test_the_share_state_calls(broker: RunningBroker, topic_id: UUID, group: str) -> None:
    state = StateCalls(broker, SharePartitionKey(group, topic_id, 0))
    read, summary = ApiKey.READ_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    assert state.call(read, leader_epoch=0).error_code == ErrorCode.INVALID_REQUEST
    assert state.write(0, 0).error_code == ErrorCode.INVALID_REQUEST
    assert state.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=5, start_offset=-1).error_code == 0
    found = state.call(read, leader_epoch=0)
    assert (found.state_epoch, found.start_offset, found.state_batches) == (5, -1, [])
    assert state.write(5, 10, (12, 15, 2, 1), (14, 19, 0, 2)).error_code == 0
    found = state.call(read, leader_epoch=0)
    assert [tuple(each) for each in found.state_batches] == [(12, 13, 2, 1), (14, 19, 0, 2)]
    assert state.write(4, 10).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert state.write(5, 10, (9, 8, 2, 1)).error_code == ErrorCode.INVALID_REQUEST
    found = state.call(summary, 1, leader_epoch=0)
    assert (found.state_epoch, found.start_offset, found.delivery_complete_count) == (5, 10, 4)
    assert state.call(ApiKey.DELETE_SHARE_GROUP_STATE).error_code == 0
    assert state.call(read, leader_epoch=0).error_code == ErrorCode.INVALID_REQUEST
    assert state.call(summary, 1, leader_epoch=0).start_offset == -1


def test_a_group_keeps_state_that_there_is(
    broker: RunningBroker, topic: str, topic_id: UUID, group: str
) -> None:
    state = StateCalls(broker, SharePartitionKey(group, topic_id, 0))
    assert state.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=5, start_offset=3).error_code == 0
    produce(broker, topic, 5)
    member = Member(broker, group, topic)
    assert acquired(member.fetch(0)) == {0: [(3, 4, 1)]}
    found = state.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, leader_epoch=0)
    assert (found.state_epoch, found.start_offset) == (5, 3)
    assert describe(broker, group)[0].group_epoch >= 5


def test_state_that_is_lost_is_made_anew(
    broker: RunningBroker, topic: str, topic_id: UUID, group: str
) -> None:
    """A salvage may lose it, though the group has recorded it."""
    earliest = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": group, "configs": earliest}]
    assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0].error_code == 0
    member = Member(broker, group, topic)
    produce(broker, topic, 5)
    state = StateCalls(broker, SharePartitionKey(group, topic_id, 0))
    assert state.call(ApiKey.DELETE_SHARE_GROUP_STATE).error_code == 0
    assert errors(member.fetch(0)) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    epoch = describe(broker, group)[0].group_epoch
    assert heartbeat(member.client, group, epoch=epoch).error_code == 0
    deadline = time.monotonic() + 10
    while not (found := acquired(member.fetch())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert found == {0: [(0, 4, 1)]}
    assert describe(broker, group)[0].group_epoch == epoch, "nobody had to give up a partition"


def test_share_state_of_what_is_not_there(broker: RunningBroker, topic_id: UUID, group: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for key in (SharePartitionKey(group, UUID(int=77), 0), SharePartitionKey(group, topic_id, 9)):
        state = StateCalls(broker, key)
        assert state.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, start_offset=0).error_code == unknown
        assert state.call(ApiKey.DELETE_SHARE_GROUP_STATE).error_code == unknown
        assert state.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1).error_code == unknown
    assert broker.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, group_id=group, topics=[]).results == []
    nameless = broker.ask(
        ApiKey.READ_SHARE_GROUP_STATE,
        0,
        group_id="",
        topics=[{"topic_id": topic_id, "partitions": [{"partition": 0}]}],
    )
    assert nameless.results == []


def test_of_a_group_that_never_had_state_no_topic_is_named_where_offsets_are_deleted(
    broker: RunningBroker, group: str
) -> None:
    client = broker.connect()
    heartbeat(client, group, topics=["nowhere-at-all"])
    heartbeat(client, group, epoch=-1)
    asked = [{"topic_name": "never-read"}, {"topic_name": "nowhere-at-all"}]
    answer = broker.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=asked)
    assert (answer.error_code, answer.responses) == (0, [])


def test_topics_that_are_not_there_are_answered_as_often_as_they_are_named(broker: RunningBroker) -> None:
    topics = [{"topic_name": "nowhere", "partitions": [0]}] * 2
    asked = [{"group_id": "g", "topics": topics}]
    (found,) = broker.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked).groups
    assert [topic.topic_name for topic in found.topics] == ["nowhere", "nowhere"]
