"""Producers, plain consumers and administration, as clients of a log expect them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import kafka
import pytest
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, OffsetSpec
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, create_topic, produce


@contextmanager
def reader(broker: Broker, topic: str, offset: int = 0, **configs: object) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "plain", "enable.auto.commit": False}
    consumer = Consumer(settings | QUIET | configs)
    consumer.assign([TopicPartition(topic, 0, offset)])
    yield consumer
    consumer.close()


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})


def read(consumer: Consumer, count: int) -> list[Message]:
    messages = consumer.consume(count, 20)
    assert [message.error() for message in messages if message.error() is not None] == []
    assert len(messages) == count
    return messages


def test_keys_headers_and_timestamps_survive(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    headers: list[tuple[str, str | bytes | None]] = [("h", b"1"), ("empty", b""), ("none", None)]
    producer.produce(topic, b"value", b"key", headers=headers, timestamp=1_700_000_000_123)
    producer.produce(topic, None, b"tombstone")
    assert producer.flush(20) == 0
    with reader(broker, topic) as consumer:
        first, second = read(consumer, 2)
    assert (first.key(), first.value(), first.headers()) == (b"key", b"value", headers)
    assert first.timestamp()[1] == 1_700_000_000_123
    assert (second.key(), second.value()) == (b"tombstone", None)


def test_reading_starts_where_asked(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b"%d" % number for number in range(100)])
    with reader(broker, topic, 90) as consumer:
        assert [message.offset() for message in read(consumer, 10)] == list(range(90, 100))
    with reader(broker, topic, 1000, **{"auto.offset.reset": "earliest"}) as consumer:
        assert read(consumer, 1)[0].offset() == 0


def test_a_waiting_fetch_is_woken_by_data(broker: Broker, topic: str) -> None:
    with reader(broker, topic, **{"fetch.wait.max.ms": 10_000}) as consumer:
        assert consumer.poll(1) is None
        sent: list[float] = []

        def send() -> None:
            sent.append(time.monotonic())
            produce(broker.bootstrap, topic, [b"late"])

        timer = threading.Timer(0.5, send)
        timer.start()
        read(consumer, 1)
        assert time.monotonic() - sent[0] < 1.0
        timer.join()


def test_offsets_by_every_special_timestamp(broker: Broker, topic: str, admin: AdminClient) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for timestamp in (1000, 5000, 3000):
        producer.produce(topic, b"x", timestamp=timestamp)
        producer.flush(20)
    place = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        wanted = admin.list_offsets({place: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        found: int = wanted[place].result(20).offset
        return found

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.max_timestamp()) == 1
    assert offset(OffsetSpec.for_timestamp(1001)) == 1
    assert offset(OffsetSpec.for_timestamp(6000)) == -1


def test_deleted_records_are_gone(broker: Broker, topic: str, admin: AdminClient) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 10)
    place = TopicPartition(topic, 0, 4)
    assert admin.delete_records([place])[place].result(20).low_watermark == 4
    with reader(broker, topic, 0, **{"auto.offset.reset": "earliest"}) as consumer:
        assert read(consumer, 1)[0].offset() == 4
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (4, 10)


def test_topics_are_made_grown_described_and_deleted(broker: Broker, group: str, admin: AdminClient) -> None:
    name = f"of-{group}"
    create_topic(broker.bootstrap, name, 2, **{"retention.ms": "12345"})
    with pytest.raises(KafkaException) as refused:
        create_topic(broker.bootstrap, name)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(name, 6)])[name].result(20)
    assert len(admin.list_topics(name, 20).topics[name].partitions) == 6
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    assert admin.describe_configs([resource])[resource].result(20)["retention.ms"].value == "12345"
    admin.delete_topics([name])[name].result(20)
    until = time.monotonic() + 5  # Apache's metadata follows a moment later
    while name in admin.list_topics(timeout=20).topics:
        assert time.monotonic() < until


def test_an_oversized_record_is_refused_and_the_next_one_taken(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b"x" * 900_000])
    errors: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "message.max.bytes": 5_000_000, "acks": "all", **QUIET}
    )
    producer.produce(topic, b"x" * 3_000_000, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    (error,) = errors
    assert error is not None
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert produce(broker.bootstrap, topic, [b"small"]) == [1]


def test_kafka_python(broker: Broker, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
    sent = [producer.send(topic, b"%d" % number, partition=0).get(20).offset for number in range(10)]
    producer.close()
    assert sent == list(range(10))
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, consumer_timeout_ms=10_000)
    place = kafka.TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    assert [next(consumer).value for _ in range(10)] == [b"%d" % number for number in range(10)]
    assert consumer.end_offsets([place]) == {place: 10}
    consumer.close()


def test_more_replicas_in_sync_than_there_are_count_as_those_that_are(broker: Broker) -> None:
    configs = {"min.insync.replicas": "3"}
    create_topic(broker.bootstrap, "in-sync", 1, **configs)
    produce(broker.bootstrap, "in-sync", [b"kept"], acks="all")
    with reader(broker, "in-sync") as consumer:
        assert [message.value() for message in read(consumer, 1)] == [b"kept"]
