"""Consumer offsets: the response for each partition of a request."""

from __future__ import annotations

from typing import Any

from tests.harness.running import RunningBroker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey


def commit(
    broker: RunningBroker, group: str, topic: str, places: list[tuple[int, str]], **fields: Any
) -> Any:
    partitions = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": note}
        for index, note in places
    ]
    topics = [{"name": topic, "partitions": partitions}]
    answer = broker.ask(ApiKey.OFFSET_COMMIT, 9, group_id=group, topics=topics, **fields)
    return [(each.partition_index, each.error_code) for found in answer.topics for each in found.partitions]


def test_the_group_refuses_before_metadata_does(broker: RunningBroker, topic: str) -> None:
    large = "x" * 4097
    unknown = commit(broker, "nobody", topic, [(0, large)], generation_id_or_member_epoch=3)
    assert unknown == [(0, ErrorCode.GROUP_ID_NOT_FOUND)]
    alone = {"generation_id_or_member_epoch": -1}
    assert commit(broker, "alone", topic, [(0, "note"), (0, large), (9, "")], **alone) == [
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.NONE),
        (0, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ]


def test_a_topic_without_partitions_is_named_where_it_is_not_there(broker: RunningBroker, topic: str) -> None:
    broker.ask(
        ApiKey.OFFSET_COMMIT,
        9,
        group_id="kept",
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    )
    topics: list[dict[str, Any]] = [{"name": name, "partitions": []} for name in (topic, "nowhere")]
    for key, fields in (
        (ApiKey.OFFSET_COMMIT, {"generation_id_or_member_epoch": -1}),
        (ApiKey.OFFSET_DELETE, {}),
    ):
        version = 9 if key is ApiKey.OFFSET_COMMIT else 0
        answer = broker.ask(key, version, group_id="kept", topics=topics, **fields)
        assert [each.name for each in answer.topics] == ["nowhere"]


def test_offsets_of_the_group_without_a_name_are_not_deleted(broker: RunningBroker) -> None:
    answer = broker.ask(ApiKey.OFFSET_DELETE, 0, group_id="", topics=[])
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_small_commit_does_not_overtake_a_large_one_of_its_client(broker: RunningBroker) -> None:
    name, count = "wide", 3000
    made = {"name": name, "num_partitions": count, "replication_factor": 1, "assignments": [], "configs": []}
    broker.ask(ApiKey.CREATE_TOPICS, 5, topics=[made], timeout_ms=30_000, validate_only=False)
    client = broker.connect()
    for offset, partitions in ((10, range(count)), (20, range(1))):
        committed = [{"partition_index": index, "committed_offset": offset} for index in partitions]
        client.send(
            ApiKey.OFFSET_COMMIT,
            9,
            group_id="ordered",
            generation_id_or_member_epoch=-1,
            topics=[{"name": name, "partitions": committed}],
        )
    for _ in range(2):
        answer = client.receive(ApiKey.OFFSET_COMMIT, 9)
        assert {part.error_code for part in answer.topics[0].partitions} == {ErrorCode.NONE}
    asked = [{"name": name, "partition_indexes": [0, 1]}]
    answer = client.ask(ApiKey.OFFSET_FETCH, 7, group_id="ordered", topics=asked)
    assert [part.committed_offset for part in answer.topics[0].partitions] == [20, 10]
