"""Share state above the size limit of clients' records is written, and survives a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.running import RunningBroker

from sharecore.config.share import RECORD_LOCKS_MAX
from sharecore.protocol import ApiKey

BATCHES = 120_000
"""Twice more than 1 MiB, at 20 bytes per batch."""
SETTINGS = {
    "group.share.max.partition.max.record.locks": str(RECORD_LOCKS_MAX),
    "message.max.bytes": "1000",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}


def ask(broker: RunningBroker, key: ApiKey, topic_id: Any, version: int = 0, **fields: Any) -> Any:
    topics = [{"topic_id": topic_id, "partitions": [{"partition": 0, **fields}]}]
    answer = broker.ask(key, version, group_id="g", topics=topics)
    found = answer.results[0].partitions[0]
    assert found.error_code == 0, found
    return found


def write(broker: RunningBroker, topic_id: Any, count: int) -> None:
    """Write records with mixed outcomes: no two neighbors have the same state."""
    batches = [
        {"first_offset": at, "last_offset": at, "delivery_state": 2 + 2 * (at % 2), "delivery_count": 1}
        for at in range(count)
    ]
    state = {"state_epoch": 1, "leader_epoch": 0, "start_offset": -1, "delivery_complete_count": count}
    ask(broker, ApiKey.WRITE_SHARE_GROUP_STATE, topic_id, 1, **state, state_batches=batches)


@pytest.mark.heavy
def test_state_of_any_size_is_written_and_kept(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, SETTINGS).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    created = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    topic_id = created.topics[0].topic_id
    ask(broker, ApiKey.INITIALIZE_SHARE_GROUP_STATE, topic_id, state_epoch=1, start_offset=0)
    # an update; the following one is a full snapshot
    for count in (BATCHES, 1, 2, 3):
        write(broker, topic_id, count)
    before = ask(broker, ApiKey.READ_SHARE_GROUP_STATE, topic_id, leader_epoch=0)
    assert len(before.state_batches) == BATCHES
    broker.stop()
    broker = RunningBroker(tmp_path, SETTINGS).start()
    after = ask(broker, ApiKey.READ_SHARE_GROUP_STATE, topic_id, leader_epoch=0)
    assert after.state_batches == before.state_batches
    write(broker, topic_id, 1)
    broker.stop()
