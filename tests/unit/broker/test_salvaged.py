"""A broker on a salvaged data directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.batches import batch
from tests.harness.running import RunningBroker

from sharecore.protocol import ApiKey
from sharecore.storage import Storage
from sharecore.storage.damage import Lost, Part, salvage

BATCHES, DAMAGED = 20, 7
WRITER = 1 << 41
"""A producer ID from after a gap left by an earlier salvage."""


def produce(broker: RunningBroker, number: int) -> int:
    """Append a batch of two records; return its first offset."""
    values = [b"number %d." % number] * 2
    records = batch(values, producer_id=WRITER, producer_epoch=0, sequence=2 * number)
    asked = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    answer = broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=asked)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code == 0
    offset: int = partition.base_offset
    return offset


def fetch(broker: RunningBroker, offset: int) -> bytes:
    asked = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
    topics = [{"topic": "t", "partitions": asked}]
    answer = broker.ask(ApiKey.FETCH, 12, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == 0
    return bytes(partition.records)


def test_a_broker_serves_what_was_salvaged(tmp_path: Path) -> None:
    damaged, new = tmp_path / "damaged", tmp_path / "new"
    broker = RunningBroker(damaged).start()
    asked = {
        "name": "t",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": "-1"}],
    }
    assert broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000).topics[0].error_code == 0
    for number in range(BATCHES):
        produce(broker, number)
    broker.stop()
    (journal,) = damaged.glob("*.journal")
    content = bytearray(journal.read_bytes())
    content[content.index(b"number %d." % DAMAGED)] ^= 1
    journal.write_bytes(content)
    with pytest.raises(OSError, match=f"sharecore store salvage {damaged} --to NEWDIR"):
        Storage(damaged)

    damage = salvage(damaged, new, lambda done, total: None)
    assert damage.lost == [Lost(Part("t", 0), 2 * DAMAGED, 2 * DAMAGED + 1)]

    broker = RunningBroker(new).start()
    numbers = [number for number in range(BATCHES) if number != DAMAGED]
    records = fetch(broker, 0)
    assert [number for number in range(BATCHES) if b"number %d." % number in records] == numbers
    assert b"number %d." % (DAMAGED + 1) in fetch(broker, 2 * DAMAGED), "consumers go on behind the gap"
    assert produce(broker, BATCHES) == 2 * BATCHES
    # the assigned producer IDs are unknown
    assert damage.history_lost
    given = broker.ask(
        ApiKey.INIT_PRODUCER_ID,
        4,
        transactional_id=None,
        transaction_timeout_ms=1000,
        producer_id=-1,
        producer_epoch=-1,
    )
    assert given.producer_id >= WRITER + (1 << 40)
    broker.stop()
