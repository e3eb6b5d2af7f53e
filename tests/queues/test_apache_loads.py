"""A whole broker of Apache Kafka goes on with the state that a group with queue settings has left behind.

Records of our `__share_group_state` go into Apache's as they are, but for the id of the topic; the broker is
started anew and loads them.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import (
    ACCEPT,
    QUIET,
    REJECT,
    RELEASE,
    configure_group,
    create_topic,
    share_consumer,
)

pytestmark = pytest.mark.timeout(300)
STATE, GROUP, TOPIC, RECORDS = "__share_group_state", "queue", "jobs", 60
ONE_PARTITION = QUICK_GROUPS | {"share.coordinator.state.topic.num.partitions": "1"}
KEYS = [None, b"", b"a", b"b", b"c"]
SETTINGS: dict[str, dict[str, object]] = {
    "order by key": {"share_ordering": "key", "share_ordering_run_max": 3},
    "order of the partition": {"share_ordering": "partition", "share_ordering_run_max": 5},
    "back-off": {"share_retry_backoff_ms": 3_600_000, "share_retry_backoff_max_ms": 3_600_000},
    "delivery times": {"share_deliver_at_header": "deliver-at"},
}
LATER = str((time.time_ns() // 1_000_000) + 86_400_000).encode()


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    made = [Broker(tmp_path / kind, kind, ONE_PARTITION) for kind in ("sharecore", "apache")]
    for each in made:
        each.start()
        _fill(each.bootstrap)
    yield made[0], made[1]
    for each in made:
        each.kill()


def _fill(bootstrap: str) -> None:
    """The same records at the same offsets."""
    create_topic(bootstrap, TOPIC)
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for number in range(RECORDS):
        headers: list[tuple[str, str | bytes | None]] = [("deliver-at", LATER)] if number % 3 == 1 else []
        producer.produce(TOPIC, b"%d" % number, key=KEYS[number % len(KEYS)], partition=0, headers=headers)
    assert producer.flush(60) == 0


def _topic_id(bootstrap: str) -> bytes:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    topic_id = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(30).topic_id
    halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    return struct.pack(">qq", *halves)


def _work(bootstrap: str) -> tuple[set[int], dict[int, int]]:
    """Settles some records; gives those that are settled, and how often the others were delivered."""
    settled: set[int] = set()
    delivered: dict[int, int] = {}
    with share_consumer(bootstrap, GROUP, [TOPIC]) as consumer:
        end = time.monotonic() + 30
        idle = 0
        while idle < 4 and len(delivered) < RECORDS * 2 // 3 and time.monotonic() < end:
            messages = [each for each in consumer.poll(0.5) if each.error() is None]
            idle = idle + 1 if delivered and not messages else 0
            kinds = {}
            for message in messages:
                offset = message.offset() or 0
                kind = (ACCEPT, RELEASE, REJECT)[offset % 3] if message.delivery_count() == 1 else ACCEPT
                kinds[offset] = kind
                delivered[offset] = message.delivery_count() or 1
                consumer.acknowledge(message, kind)
            if messages:
                assert set(consumer.commit_sync(20).values()) == {None}
                settled |= {offset for offset, kind in kinds.items() if kind != RELEASE}
    return settled, {offset: count for offset, count in delivered.items() if offset not in settled}


def _state(bootstrap: str) -> list[tuple[bytes, bytes | None]]:
    """All records of the state topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reads", **QUIET})
    consumer.assign([TopicPartition(STATE, 0, 0)])
    found: list[tuple[int, bytes, bytes | None]] = []
    end = consumer.get_watermark_offsets(TopicPartition(STATE, 0), timeout=20)[1]
    while not found or found[-1][0] < end - 1:
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        found.append((message.offset() or 0, message.key() or b"", message.value()))
    consumer.close()
    return [(key, value) for _, key, value in found]


@pytest.mark.parametrize("name", SETTINGS)
def test_apache_delivers_all_that_is_not_settled_and_nothing_else(
    brokers: tuple[Broker, Broker], name: str
) -> None:
    ours, apache = brokers
    configure_group(ours.bootstrap, GROUP, share_auto_offset_reset="earliest", **SETTINGS[name])
    settled, released = _work(ours.bootstrap)
    assert len(settled) > 10
    records, ids = _state(ours.bootstrap), [_topic_id(each.bootstrap) for each in brokers]
    assert ours.terminate() == 0

    configure_group(apache.bootstrap, GROUP, share_auto_offset_reset="earliest")
    # the group must exist before its state
    with share_consumer(apache.bootstrap, GROUP, [TOPIC]) as consumer:
        end = time.monotonic() + 60
        while not consumer.poll(0.5):
            assert time.monotonic() < end
    # its own records must precede ours
    apache.terminate()
    apache.start()
    producer = Producer({"bootstrap.servers": apache.bootstrap, "client.id": "__admin_client", **QUIET})
    for key, value in records:
        assert ids[0] in key
        producer.produce(STATE, value, key=key.replace(ids[0], ids[1]), partition=0)
    assert producer.flush(60) == 0
    apache.terminate()
    apache.start()

    came: dict[int, int] = {}
    with share_consumer(apache.bootstrap, GROUP, [TOPIC]) as consumer:
        end = time.monotonic() + 90
        while came.keys() < set(range(RECORDS)) - settled:
            assert time.monotonic() < end, sorted(set(range(RECORDS)) - settled - came.keys())
            for message in consumer.poll(0.5):
                assert message.error() is None
                came[message.offset() or 0] = message.delivery_count() or 1
                consumer.acknowledge(message, ACCEPT)
            consumer.commit_sync(20)
    assert came.keys() == set(range(RECORDS)) - settled
    assert all(came[offset] == count + 1 for offset, count in released.items()), (came, released)
