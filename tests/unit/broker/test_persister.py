"""Where a broker stores the state of share partitions (`group.share.persister.class.name`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.harness.batches import batch
from tests.harness.running import RunningBroker

from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey

CLASS = "group.share.persister.class.name"
ACCEPT = b"\1"
ATTEMPTS = 100
EXAMPLES = Path(__file__).resolve().parents[3] / "examples/persister"


@contextmanager
def running(data: Path, settings: dict[str, str]) -> Iterator[RunningBroker]:
    broker = RunningBroker(data, {"group.share.assignment.interval.ms": "0"} | settings).start()
    try:
        yield broker
    finally:
        broker.stop()


def ten_records(broker: RunningBroker) -> UUID:
    """Create a topic of one partition, and a group that reads it from its start; return the topic ID."""
    asked = {"name": "foo", "num_partitions": 1, "replication_factor": 1}
    topic_id: UUID = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000).topics[0].topic_id
    data = [{"name": "foo", "partition_data": [{"index": 0, "records": batch([b"x"] * 10)}]}]
    broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
    broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    return topic_id


def fetch(broker: RunningBroker, topic_id: UUID) -> list[tuple[int, int, int]]:
    """Return the records of a new member, which retries until the group's state is initialized, and never
    leaves.
    """
    limits = {
        "max_wait_ms": 5000,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 500,
        "batch_size": 500,
    }
    partitions = [{"partition_index": 0, "acknowledgement_batches": []}]
    for _ in range(ATTEMPTS):
        answer = broker.connect().ask(
            ApiKey.SHARE_FETCH,
            2,
            group_id="g",
            member_id="m",
            share_session_epoch=0,
            topics=[{"topic_id": topic_id, "partitions": partitions}],
            forgotten_topics_data=[],
            **limits,
        )
        (part,) = answer.responses[0].partitions
        if part.acquired_records:
            break
        time.sleep(0.05)
    assert part.error_code == 0, part
    return [tuple(each) for each in part.acquired_records]


def accept(broker: RunningBroker, topic_id: UUID, first: int, last: int) -> int:
    batches = [{"first_offset": first, "last_offset": last, "acknowledge_types": ACCEPT}]
    partitions = [{"partition_index": 0, "acknowledgement_batches": batches}]
    answer = broker.ask(
        ApiKey.SHARE_ACKNOWLEDGE,
        2,
        group_id="g",
        member_id="m",
        share_session_epoch=1,
        topics=[{"topic_id": topic_id, "partitions": partitions}],
    )
    code: int = answer.responses[0].partitions[0].error_code
    return code


def join(broker: RunningBroker) -> None:
    member: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0}
    answer = broker.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **member, subscribed_topic_names=["foo"])
    assert answer.error_code == 0


def states_written(broker: RunningBroker) -> int:
    """Return the number of records in `__share_group_state`."""
    latest = [{"partition_index": index, "timestamp": -1} for index in range(2)]
    wanted = {"replica_id": -1, "topics": [{"name": "__share_group_state", "partitions": latest}]}
    answer = broker.ask(ApiKey.LIST_OFFSETS, 7, isolation_level=0, **wanted)
    return sum(partition.offset for partition in answer.topics[0].partitions)


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.persister.NoOpStatePersister"])
def test_without_a_persister_a_fetch_needs_no_state_and_nothing_is_kept(tmp_path: Path, name: str) -> None:
    with running(tmp_path, {CLASS: name}) as broker:
        topic_id = ten_records(broker)
        assert fetch(broker, topic_id) == [(0, 9, 1)], "nobody has joined: there is no state"
        assert accept(broker, topic_id, 0, 3) == 0
        assert states_written(broker) == 0
    with running(tmp_path, {CLASS: name}) as broker:
        assert fetch(broker, topic_id) == [(0, 9, 1)], "it was kept nowhere"


@pytest.mark.parametrize(
    "settings", [{}, {CLASS: "org.apache.kafka.server.share.persister.DefaultStatePersister"}]
)
def test_state_is_kept_in_the_state_topic_by_default(tmp_path: Path, settings: dict[str, str]) -> None:
    with running(tmp_path, settings) as broker:
        topic_id = ten_records(broker)
        join(broker)
        assert fetch(broker, topic_id) == [(0, 9, 1)]
        assert accept(broker, topic_id, 0, 3) == 0
        assert states_written(broker) > 0
    with running(tmp_path, settings) as broker:
        assert [each[:2] for each in fetch(broker, topic_id)] == [(4, 9)], (
            "whether the lease ended first or not"
        )


@pytest.mark.heavy
def test_a_persister_of_the_users_keeps_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    settings = {
        CLASS: "sqlite_persister:SqlitePersister",
        "group.share.persister.path": str(tmp_path / "state.db"),
    }
    with running(tmp_path / "data", settings) as broker:
        topic_id = ten_records(broker)
        join(broker)
        assert fetch(broker, topic_id) == [(0, 9, 1)]
        assert accept(broker, topic_id, 0, 3) == 0
        assert states_written(broker) == 0
    with running(tmp_path / "data", settings) as broker:
        assert [each[:2] for each in fetch(broker, topic_id)] == [(4, 9)], (
            "whether the lease ended first or not"
        )


def test_a_persister_that_cannot_be_had_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere:Nothing: ModuleNotFoundError"):
        RunningBroker(tmp_path, {CLASS: "nowhere:Nothing"}).start()
    with pytest.raises(ConfigError, match=r"allowed: empty, Kafka's DefaultStatePersister"):
        RunningBroker(tmp_path, {CLASS: "com.example.MyPersister"})
