"""Share state above the default size of a Kafka record, as a large share.partition.max.waiting allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.clients import create_topic
from tests.harness.running import RunningBroker

from sharecore.broker.broker import Broker
from sharecore.protocol import ApiKey

TOPIC, GROUP = "jobs", "waits"
BATCHES, STEP = 60_000, 30_000
UPDATES = 4
"""Enough to cause a snapshot."""
KAFKAS_RECORD = 1 << 20
SETTINGS = {"share.coordinator.snapshot.update.records.per.snapshot": "3"}


class Owner:
    """Writes and reads the state of one share partition as Kafka's brokers do."""

    def __init__(self, broker: RunningBroker) -> None:
        self._broker = broker
        topic = broker.look(lambda running: running.topics.get(TOPIC))
        assert topic is not None
        self._topic_id = topic.topic_id

    def ask(self, api: ApiKey, **part: object) -> Any:
        """Return a request about one share partition."""
        topics = [{"topic_id": self._topic_id, "partitions": [{"partition": 0, **part}]}]
        answer = self._broker.ask(api, 0, group_id=GROUP, topics=topics)
        found = answer.results[0].partitions[0]
        assert found.error_code == 0, found.error_message
        return found

    def write(self, first: int, last: int, count: int = 1) -> None:
        """Acknowledge every second record."""
        batches = [
            {
                "first_offset": offset,
                "last_offset": offset,
                "delivery_state": 2 if offset % 2 else 0,
                "delivery_count": count,
            }
            for offset in range(first, last)
        ]
        fields = {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0, "state_batches": batches}
        self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, **fields)

    def read(self) -> list[tuple[int, int, int, int]]:
        """Read all of it."""
        found = self.ask(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0)
        return [tuple(each) for each in found.state_batches]


@pytest.mark.heavy
def test_a_snapshot_above_the_size_of_a_kafka_record_is_written_and_found_by_the_next_start(
    tmp_path: Path,
) -> None:
    running = RunningBroker(tmp_path, SETTINGS).start()
    try:
        create_topic(f"127.0.0.1:{running.port}", TOPIC)
        owner = Owner(running)
        owner.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=0, start_offset=0)
        for first in range(0, BATCHES, STEP):
            owner.write(first, first + STEP)
        before = _bytes(running)
        for count in range(UPDATES):
            owner.write(0, 1, 1 + count % 2)
        assert _bytes(running) - before > KAFKAS_RECORD, "a snapshot was among them"
        written = owner.read()
    finally:
        running.stop()
    assert len(written) == BATCHES
    running = RunningBroker(tmp_path, SETTINGS).start()
    try:
        assert Owner(running).read() == written
    finally:
        running.stop()


def _bytes(running: RunningBroker) -> int:
    """Return the size of the state topic."""

    def size(broker: Broker) -> int:
        topic = broker.topics.get("__share_group_state")
        assert topic is not None
        return sum(log.size_bytes for log in topic.partitions)

    return running.look(size)
