"""Metadata and the lifecycle of topics, in every supported version."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from tests.harness.running import RunningBroker

from sharecore.broker.handlers import SERVED
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

NOBODY = uuid.UUID(int=99)


def versions(api_key: ApiKey) -> range:
    return range(SERVED[api_key].min_version, SERVED[api_key].max_version + 1)


def create(broker: RunningBroker, version: int = 7, *, validate_only: bool = False, **asked: Any) -> Any:
    asked = {"num_partitions": 1, "replication_factor": 1} | asked
    answer = broker.ask(
        ApiKey.CREATE_TOPICS, version, topics=[asked], timeout_ms=1000, validate_only=validate_only
    )
    return answer.topics[0]


def metadata(broker: RunningBroker, name: str, version: int = 13, **more: Any) -> Any:
    return broker.ask(ApiKey.METADATA, version, topics=[{"name": name}], **more).topics[0]


@pytest.mark.parametrize("version", versions(ApiKey.METADATA))
def test_metadata_in_every_version(broker: RunningBroker, topic: str, version: int) -> None:
    answer = broker.ask(ApiKey.METADATA, version, topics=[{"name": topic}], allow_auto_topic_creation=False)
    assert [(node.node_id, node.host, node.port) for node in answer.brokers] == [
        (1, "127.0.0.1", broker.port)
    ]
    found = answer.topics[0]
    assert (found.error_code, found.name) == (0, topic)
    assert [(part.partition_index, part.leader_id, part.isr_nodes) for part in found.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
    ]
    everything = broker.ask(ApiKey.METADATA, version, topics=None if version else [])
    assert topic in [each.name for each in everything.topics]
    if version >= 10:
        assert found.topic_id is not None
    if version >= 1:
        assert answer.controller_id == 1
        assert broker.ask(ApiKey.METADATA, version, topics=[]).topics == []


def test_metadata_by_id(broker: RunningBroker, topic: str) -> None:
    topic_id = metadata(broker, topic).topic_id
    asked = [{"topic_id": topic_id, "name": None}, {"topic_id": NOBODY, "name": None}]
    known, unknown = broker.ask(ApiKey.METADATA, 13, topics=asked).topics
    assert (known.name, len(known.partitions)) == (topic, 2)
    assert (unknown.error_code, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, NOBODY)


@pytest.mark.parametrize("version", [10, 11])
def test_versions_that_tell_ids_are_not_asked_by_them(
    broker: RunningBroker, topic: str, version: int
) -> None:
    asked = [{"name": topic, "topic_id": uuid.uuid4()}, {"name": topic}]
    answer = broker.ask(ApiKey.METADATA, version, topics=asked, allow_auto_topic_creation=False)
    assert answer.brokers == []
    assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_topics_are_made_when_first_asked_for(broker: RunningBroker) -> None:
    refused = metadata(broker, "made-by-asking", allow_auto_topic_creation=False)
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    made = metadata(broker, "made-by-asking", allow_auto_topic_creation=True)
    assert (made.error_code, len(made.partitions)) == (0, 1)
    assert metadata(broker, "made-by-asking").topic_id == made.topic_id
    assert metadata(broker, "made by asking").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_operations_are_told_on_request(broker: RunningBroker, topic: str) -> None:
    assert metadata(broker, topic).topic_authorized_operations == -2147483648
    assert (
        metadata(broker, topic, include_topic_authorized_operations=True).topic_authorized_operations == 3576
    )


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_create_in_every_version(broker: RunningBroker, version: int) -> None:
    name = f"created-{version}"
    assert create(broker, version, name=name, num_partitions=3).error_code == 0
    assert len(metadata(broker, name).partitions) == 3
    assert create(broker, version, name=name).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert create(broker, version, name=f"{name}-only", validate_only=True).error_code == 0
    assert metadata(broker, f"{name}-only", allow_auto_topic_creation=False).error_code != 0


def test_a_created_topic_is_told_with_its_configuration(broker: RunningBroker) -> None:
    made = create(broker, name="told", num_partitions=-1, replication_factor=-1)
    assert (made.num_partitions, made.replication_factor) == (1, 1)
    assert made.topic_id == metadata(broker, "told").topic_id
    made = create(broker, name="told-2", configs=[{"name": "retention.ms", "value": "5000"}])
    settings = {config.name: (config.value, config.config_source) for config in made.configs}
    assert settings["retention.ms"] == ("5000", 1)
    assert settings["cleanup.policy"] == ("delete", 5)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": ".."}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "bad name"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "x" * 250}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "t", "num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "num_partitions": 20_000}, ErrorCode.POLICY_VIOLATION),
        ({"name": "t", "replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "replication_factor": 2, "num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        (
            {"name": "t", "num_partitions": 0, "configs": [{"name": "nonsense", "value": "x"}]},
            ErrorCode.INVALID_CONFIG,
        ),
        ({"name": "t", "configs": [{"name": "retention.ms", "value": "x"}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "t", "configs": [{"name": "nonsense", "value": "x"}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "t", "configs": [{"name": "retention.ms", "value": None}]}, ErrorCode.INVALID_CONFIG),
        (
            {"name": "t", "assignments": [{"partition_index": 0, "broker_ids": [1]}]},
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_what_cannot_be_created(broker: RunningBroker, asked: dict[str, Any], code: ErrorCode) -> None:
    refused = create(broker, **asked)
    assert (refused.error_code, refused.topic_id) == (code, None)
    assert refused.error_message


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ([(0, [1]), (1, [1])], 0),
        ([(0, [5])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(1, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1, 1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_manual_assignments(
    broker: RunningBroker, assignments: list[tuple[int, list[int]]], code: int
) -> None:
    asked = [{"partition_index": index, "broker_ids": brokers} for index, brokers in assignments]
    made = create(
        broker, name=f"assigned-{code}", num_partitions=-1, replication_factor=-1, assignments=asked
    )
    assert made.error_code == code
    if not code:
        assert made.num_partitions == len(assignments)


def test_names_that_metrics_could_not_tell_apart(broker: RunningBroker) -> None:
    assert create(broker, name="a.b").error_code == 0
    assert create(broker, name="a_b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_named_twice_in_one_request(broker: RunningBroker) -> None:
    asked = {"name": "twice", "num_partitions": 1, "replication_factor": 1}
    answer = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked, asked], timeout_ms=1000)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("twice", ErrorCode.INVALID_REQUEST)
    ]


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_TOPICS))
def test_delete_in_every_version(broker: RunningBroker, topic: str, version: int) -> None:
    names: dict[str, Any] = {"topic_names": [topic, "nowhere"]}
    if version >= 6:
        names = {"topics": [{"name": topic}, {"name": "nowhere"}]}
    answer = broker.ask(ApiKey.DELETE_TOPICS, version, **names, timeout_ms=1000)
    codes = {each.name: each.error_code for each in answer.responses}
    assert codes == {topic: 0, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    gone = metadata(broker, topic, allow_auto_topic_creation=False)
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_delete_by_id(broker: RunningBroker, topic: str) -> None:
    topic_id = metadata(broker, topic).topic_id
    asked = [
        {"name": None, "topic_id": topic_id},
        {"name": None, "topic_id": NOBODY},
        {"name": "x", "topic_id": NOBODY},
    ]
    answer = broker.ask(ApiKey.DELETE_TOPICS, 6, topics=asked, timeout_ms=1000)
    assert [(each.name, each.error_code) for each in answer.responses] == [
        ("x", ErrorCode.INVALID_REQUEST),
        (topic, 0),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_a_topic_that_is_named_twice_is_not_deleted(broker: RunningBroker, topic: str) -> None:
    topic_id = metadata(broker, topic).topic_id
    by_name, by_id, neither = {"name": topic}, {"name": None, "topic_id": topic_id}, {"name": None}
    for asked, told in (
        ([by_name, by_id], [(topic, topic_id)]),
        ([by_name, by_name], [(topic, None)]),
        ([by_id, by_id], [(None, topic_id)]),
        ([by_id, by_id, by_name], [(topic, topic_id), (None, topic_id)]),
        ([neither, neither], [(None, None), (None, None)]),
    ):
        answer = broker.ask(ApiKey.DELETE_TOPICS, 6, topics=asked, timeout_ms=1000)
        assert [(each.name, each.topic_id) for each in answer.responses] == told
        assert {each.error_code for each in answer.responses} == {ErrorCode.INVALID_REQUEST}
    assert metadata(broker, topic).topic_id == topic_id


def test_a_topic_made_again_is_another(broker: RunningBroker, topic: str) -> None:
    before = metadata(broker, topic).topic_id
    broker.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": topic}], timeout_ms=1000)
    create(broker, name=topic)
    assert metadata(broker, topic).topic_id != before


def grow(broker: RunningBroker, version: int = 3, *, validate_only: bool = False, **asked: Any) -> int:
    asked = {"assignments": None} | asked
    answer = broker.ask(
        ApiKey.CREATE_PARTITIONS, version, topics=[asked], timeout_ms=1000, validate_only=validate_only
    )
    code: int = answer.results[0].error_code
    return code


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_PARTITIONS))
def test_a_topic_grows(broker: RunningBroker, topic: str, version: int) -> None:
    assert grow(broker, version, name=topic, count=9, validate_only=True) == 0
    assert len(metadata(broker, topic).partitions) == 2
    assert grow(broker, version, name=topic, count=4) == 0
    assert len(metadata(broker, topic).partitions) == 4
    assert grow(broker, version, name=topic, count=4) == ErrorCode.INVALID_PARTITIONS
    assert grow(broker, version, name=topic, count=1) == ErrorCode.INVALID_PARTITIONS
    assert grow(broker, version, name=topic, count=-1) == ErrorCode.INVALID_PARTITIONS
    assert grow(broker, version, name="nowhere", count=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    too_few = [{"broker_ids": [1]}]
    assert (
        grow(broker, version, name=topic, count=6, assignments=too_few)
        == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    )
    assert grow(broker, version, name=topic, count=5, assignments=too_few) == 0
    stranger = [{"broker_ids": [7]}]
    assert (
        grow(broker, version, name=topic, count=6, assignments=stranger)
        == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    )


def test_partitions_come_in_pages(broker: RunningBroker) -> None:
    for name, count in (("page-a", 3), ("page-b", 2)):
        create(broker, name=name, num_partitions=count)
    asked = [{"name": name} for name in ("page-b", "nowhere", "page-a")]
    seen, cursor = [], None
    for _ in range(4):
        answer = broker.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=asked, response_partition_limit=2, cursor=cursor
        )
        seen += [(topic.name, part.partition_index) for topic in answer.topics for part in topic.partitions]
        seen += [(topic.name, -topic.error_code) for topic in answer.topics if topic.error_code]
        if answer.next_cursor is None:
            break
        cursor = answer.next_cursor._asdict()
    unknown = ("nowhere", -ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert sorted(set(seen)) == sorted(
        [*(("page-a", i) for i in range(3)), *(("page-b", i) for i in range(2)), unknown]
    )
    assert len([each for each in seen if each != unknown]) == 5
    everything = broker.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[], response_partition_limit=2000)
    names = [topic.name for topic in everything.topics]
    assert names == sorted(names)
    assert {"page-a", "page-b"} <= set(names)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_LOG_DIRS))
def test_log_directories(broker: RunningBroker, topic: str, version: int) -> None:
    asked = [{"topic": topic, "partitions": [0, 9, 0]}, {"topic": "nowhere", "partitions": [0]}]
    (directory,) = broker.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=asked).results
    assert directory.log_dir == broker.config.data_dir
    assert [(each.name, [part.partition_index for part in each.partitions]) for each in directory.topics] == [
        (topic, [0])
    ]
    (everything,) = broker.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=None).results
    assert topic in [each.name for each in everything.topics]


def test_a_cursor_names_a_topic_and_partition_that_can_be(broker: RunningBroker, topic: str) -> None:
    for cursor in (
        {"topic_name": "elsewhere", "partition_index": 0},
        {"topic_name": topic, "partition_index": -1},
    ):
        answer = broker.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            topics=[{"name": topic}],
            response_partition_limit=2,
            cursor=cursor,
        )
        assert [(each.name, each.error_code, each.partitions) for each in answer.topics] == [
            (topic, ErrorCode.INVALID_REQUEST, [])
        ]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_nothing_is_done_in_no_time(broker: RunningBroker, topic: str, timeout_ms: int) -> None:
    asked: dict[ApiKey, dict[str, Any]] = {
        ApiKey.CREATE_TOPICS: {"topics": [{"name": "late", "num_partitions": 1, "replication_factor": 1}]},
        ApiKey.CREATE_PARTITIONS: {"topics": [{"name": topic, "count": 9}]},
        ApiKey.DELETE_TOPICS: {"topics": [{"name": topic, "topic_id": None}]},
        ApiKey.ELECT_LEADERS: {"topic_partitions": [{"topic": topic, "partitions": [0]}]},
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
            "topics": [{"name": topic, "partitions": [{"partition_index": 0, "replicas": [1]}]}]
        },
    }
    told = []
    for key, fields in asked.items():
        answer = broker.ask(key, SERVED[key].max_version, timeout_ms=timeout_ms, **fields)
        told += next(value for value in answer if isinstance(value, list))
    told[-2:] = [*told[-2].partition_result, *told[-1].partitions]
    assert [(each.error_code, each.error_message) for each in told] == [
        (ErrorCode.REQUEST_TIMED_OUT, None)
    ] * 5
    assert len(metadata(broker, topic).partitions) == 2
    made = metadata(broker, "late", allow_auto_topic_creation=False)
    assert made.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_is_refused_anyway_needs_no_time(broker: RunningBroker) -> None:
    asked = {"name": "twice", "num_partitions": 1, "replication_factor": 1}
    (made,) = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked, asked], timeout_ms=0).topics
    grown = {"name": "twice", "count": 3}
    (more,) = broker.ask(ApiKey.CREATE_PARTITIONS, 3, topics=[grown, grown], timeout_ms=0).results
    named = [{"name": "twice", "topic_id": NOBODY}]
    (gone,) = broker.ask(ApiKey.DELETE_TOPICS, 6, topics=named, timeout_ms=0).responses
    assert {made.error_code, more.error_code, gone.error_code} == {ErrorCode.INVALID_REQUEST}
