"""A deleted share group starts over."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.harness.batches import batch
from tests.harness.running import RunningBroker

from sharecore.protocol import ApiKey

EARLIEST = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}


def heartbeat(broker: RunningBroker, epoch: int) -> Any:
    return broker.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        subscribed_topic_names=["t"] if epoch == 0 else None,
    )


def take(broker: RunningBroker) -> list[tuple[int, int, int]]:
    """Join, take the available records, and leave."""
    answer = heartbeat(broker, 0)
    while answer.assignment is None or not answer.assignment.topic_partitions:
        time.sleep(0.05)
        answer = heartbeat(broker, answer.member_epoch)
    topic_id = answer.assignment.topic_partitions[0].topic_id
    topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}]
    found: list[tuple[int, int, int]] = []
    for epoch in range(100):
        fetched = broker.ask(
            ApiKey.SHARE_FETCH,
            2,
            group_id="g",
            member_id="m",
            share_session_epoch=epoch,
            topics=topics if epoch == 0 else [],
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=100,
            batch_size=100,
        )
        parts = [part for topic in fetched.responses for part in topic.partitions]
        found = [tuple(each) for part in parts for each in part.acquired_records]
        if found:
            break
    heartbeat(broker, -1)
    return found


@pytest.mark.heavy
def test_a_share_group_that_was_deleted_begins_anew(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    try:
        broker.ask(
            ApiKey.CREATE_TOPICS, 7, topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}]
        )
        asked = [{"name": "t", "partition_data": [{"index": 0, "records": batch([b"a", b"b"])}]}]
        broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=asked)
        resources = [{"resource_type": 32, "resource_name": "g", "configs": [EARLIEST]}]
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        assert take(broker) == [(0, 1, 1)]
        assert take(broker) == [(0, 1, 2)]
        deleted = broker.ask(ApiKey.DELETE_GROUPS, 2, groups_names=["g"])
        assert deleted.results[0].error_code == 0
        assert take(broker) == [(0, 1, 1)]
    finally:
        broker.stop()
