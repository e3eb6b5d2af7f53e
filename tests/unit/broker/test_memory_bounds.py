"""State that clients leave in memory is bounded: beyond the limit they get errors that they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

LONG = "x" * 30_000
"""Long, so that few names fill a table."""
ENOUGH = 40
BOUNDS = ("groups", "group.offsets", "transactional.ids", "producer.ids")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    settings = {f"sharecore.{each}.bytes.max": "1048576" for each in BOUNDS}
    running = RunningBroker(tmp_path, settings).start()
    topic = {"name": "t", "num_partitions": 300, "replication_factor": 1}
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
    yield running
    running.stop()


def join(client: Client, group: str) -> int:
    protocols = [{"name": "range", "metadata": b""}]
    asked = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": ""}
    asked |= {"protocol_type": "consumer", "protocols": protocols}
    return int(client.ask(ApiKey.JOIN_GROUP, 5, group_id=group, **asked).error_code)


def consume(client: Client, group: str) -> int:
    asked = {"member_id": "one", "member_epoch": 0, "rebalance_timeout_ms": 10_000}
    asked |= {"subscribed_topic_names": ["nosuch"], "topic_partitions": []}
    answer = client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, group_id=group, **asked)
    assert ("sharecore.groups.bytes.max" in (answer.error_message or "")) is (answer.error_code != 0)
    return int(answer.error_code)


def share(client: Client, group: str) -> int:
    asked = {"member_id": "one", "member_epoch": 0, "subscribed_topic_names": ["nosuch"]}
    answer = client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, group_id=group, **asked)
    assert ("sharecore.groups.bytes.max" in (answer.error_message or "")) is (answer.error_code != 0)
    return int(answer.error_code)


def commit(client: Client, group: str, *, metadata: str = "", count: int = 1) -> int:
    partitions = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": metadata}
        for index in range(count)
    ]
    asked: dict[str, Any] = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    topics = [{"name": "t", "partitions": partitions}]
    answer = client.ask(ApiKey.OFFSET_COMMIT, 8, **asked, topics=topics)
    (code,) = {each.error_code for each in answer.topics[0].partitions}
    return int(code)


def begin(client: Client, transactional_id: str) -> int:
    asked = {"transactional_id": transactional_id, "transaction_timeout_ms": 10_000}
    return int(client.ask(ApiKey.INIT_PRODUCER_ID, 4, **asked).error_code)


@pytest.mark.parametrize("enter", [join, consume, share, commit])
def test_groups_fill_no_more_than_their_bound(
    broker: RunningBroker, enter: Callable[[Client, str], int]
) -> None:
    client = Client(broker.port)
    codes = [enter(client, f"{enter.__name__}-{number}-{LONG}") for number in range(ENOUGH)]
    assert codes[1] != ErrorCode.GROUP_MAX_SIZE_REACHED
    assert codes[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert broker.look(lambda each: sum(group.memory_bytes for group in each.groups.registry)) < 1 << 20


def test_offsets_fill_no_more_than_their_bound(broker: RunningBroker) -> None:
    client = Client(broker.port)
    assert commit(client, "many", metadata="m" * 4000, count=200) == ErrorCode.NONE
    assert commit(client, "many", metadata="m" * 4000, count=300) == ErrorCode.POLICY_VIOLATION
    assert commit(client, "many", metadata="m" * 4000, count=200) == ErrorCode.NONE


def test_transactional_ids_fill_no_more_than_their_bound(broker: RunningBroker) -> None:
    client = Client(broker.port)
    codes = [begin(client, f"{number}-{LONG}") for number in range(ENOUGH)]
    assert codes[0] == ErrorCode.NONE
    assert codes[-1] == ErrorCode.POLICY_VIOLATION


def test_idempotent_producers_fill_no_more_than_their_bound(broker: RunningBroker) -> None:
    """sharecore.producer.ids.bytes.max: partitions with few producers keep them."""
    client = Client(broker.port)
    produce(client, {299: 7})
    for first in range(1000, 5000, 250):
        produce(client, {index: first + index for index in range(250)})
    asked = [{"name": "t", "partition_indexes": list(range(300))}]
    answer = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, topics=asked)
    found = {each.partition_index: each.active_producers for each in answer.topics[0].partitions}
    assert 2000 < sum(map(len, found.values())) < (1 << 20) / 350
    assert [each.producer_id for each in found[299]] == [7]


def produce(client: Client, producers: Mapping[int, int]) -> None:
    """Send a batch to each partition, with that producer ID."""
    parts = [
        {"index": index, "records": batch([b"x"], producer_id=producer, producer_epoch=0, sequence=0)}
        for index, producer in producers.items()
    ]
    data = [{"name": "t", "partition_data": parts}]
    answer = client.ask(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=5000, topic_data=data)
    assert {each.error_code for each in answer.responses[0].partition_responses} == {0}
