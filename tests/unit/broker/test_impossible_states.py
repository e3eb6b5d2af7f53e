"""Share state that no share-partition leader writes, though Kafka's share coordinator accepts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.running import RunningBroker
from tests.harness.state_values import encode_update
from tests.unit.broker.share_member import ACCEPT, Member, acquired, errors, produce

from sharecore.admin.doctor import data_directory
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.sharestate.records import STATE_BATCH, UPDATE, Update, encode_key

AVAILABLE, LEASED, ACKNOWLEDGED, NONSENSE = 0, 1, 2, 7


def update(*batches: tuple[int, int, int, int]) -> bytes:
    """Return the value of a ShareUpdate record with these state batches, valid or not."""
    return encode_update(Update(1, 0, -1, b"".join(STATE_BATCH.pack(*batch) for batch in batches)))


def write_by_hand(broker: RunningBroker, key: SharePartitionKey, value: bytes) -> None:
    """Append a record of share state directly to the log."""

    def append(running: Any) -> None:
        index = running.share.coordinator.partition_of(key)
        log = running.topics.get(STATE_TOPIC).partitions[index]
        log.append_local([(encode_key(UPDATE, key), value)], now_ms=1)

    broker.look(append)


def earliest(broker: RunningBroker, group: str) -> None:
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": group, "configs": configs}]
    assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0].error_code == 0


@pytest.mark.heavy
@pytest.mark.parametrize(
    "batch",
    [
        (2, 3, NONSENSE, 1),
        (2, 3, -1, 1),
        (2, 3, AVAILABLE, -5),
        (3, 2, ACKNOWLEDGED, 1),
        (-9, 3, ACKNOWLEDGED, 1),
        (2, 2**60, ACKNOWLEDGED, 1),
        (2, 3, LEASED, 1),
    ],
)
def test_a_share_partition_goes_on_with_state_that_cannot_be(
    tmp_path: Path, batch: tuple[int, int, int, int], caplog: pytest.LogCaptureFixture
) -> None:
    broker = RunningBroker(tmp_path).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    assert broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000).topics[0].error_code == 0
    earliest(broker, "g")
    produce(broker, "t", 6)
    member = Member(broker, "g", "t")
    assert acquired(member.fetch(0)) == {0: [(0, 5, 1)]}
    assert errors(member.acknowledge({0: [(0, 1, ACCEPT), (4, 4, ACCEPT)]})) == [(0, 0, 0)]
    member.fetch(epoch=-1)
    key = SharePartitionKey("g", member.topic_id, 0)
    write_by_hand(broker, key, update(batch))
    broker.stop()

    broker = RunningBroker(tmp_path).start()
    again = Member(broker, "g", "t", "again")
    leased = acquired(again.fetch(0, max_wait_ms=5000))[0]
    counts = {offset: count for first, last, count in leased for offset in range(first, last + 1)}
    assert counts == {2: 2, 3: 2, 5: 2}
    assert errors(again.acknowledge({0: [(2, 3, ACCEPT), (5, 5, ACCEPT)]})) == [(0, 0, 0)]
    repaired = broker.look(
        lambda running: running.share.coordinator.repaired + running.share.partitions.repaired
    )
    broker.stop()
    assert repaired == 1
    (told,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "state batches" in told.getMessage()


def test_doctor_tells_of_it(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    member = Member(broker, "g", "t")
    key = SharePartitionKey("g", member.topic_id, 0)
    assert [each.level for each in data_directory(tmp_path)] == ["good", "good"]
    write_by_hand(broker, key, update((2, 3, NONSENSE, 1)))
    write_by_hand(broker, key, b"\0\0")
    broker.stop()
    found = {each.level: each.what for each in data_directory(tmp_path)}
    assert STATE_TOPIC in found["doubt"]
    assert "a state batch is impossible" in found["doubt"]
    assert STATE_TOPIC in found["bad"]


def test_a_leader_may_be_told_of_locks_over_the_wire(tmp_path: Path) -> None:
    """WriteShareGroupState accepts the state, as Kafka's does."""
    broker = RunningBroker(tmp_path).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    earliest(broker, "g")
    produce(broker, "t", 3)
    member = Member(broker, "g", "t")
    summary = broker.ask(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        1,
        group_id="g",
        topics=[{"topic_id": member.topic_id, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    )
    epoch = summary.results[0].partitions[0].state_epoch
    batch = {"first_offset": 0, "last_offset": 2, "delivery_state": LEASED, "delivery_count": 1}
    partition = {
        "partition": 0,
        "state_epoch": epoch,
        "leader_epoch": 0,
        "start_offset": 0,
        "delivery_complete_count": 0,
        "state_batches": [batch],
    }
    wrote = broker.ask(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        1,
        group_id="g",
        topics=[{"topic_id": member.topic_id, "partitions": [partition]}],
    )
    assert wrote.results[0].partitions[0].error_code == 0
    assert acquired(member.fetch(0, max_wait_ms=5000)) == {0: [(0, 2, 2)]}
    broker.stop()
