"""confluent-kafka, set up the way the tests need it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

QUIET = {"log_level": 0}
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


def create_topic(bootstrap: str, name: str, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs)
    admin.create_topics([new])[name].result(30)


def configure_group(bootstrap: str, group: str, **configs: object) -> None:
    """Sets group configurations; `_` in a name stands for a dot."""
    _configure(bootstrap, ResourceType.GROUP, group, configs)


def configure_topic(bootstrap: str, topic: str, **configs: object) -> None:
    """Sets configurations of a topic; `_` in a name stands for a dot."""
    _configure(bootstrap, ResourceType.TOPIC, topic, configs)


def _configure(bootstrap: str, kind: ResourceType, name: str, configs: Mapping[str, object]) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for key, value in configs.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.incremental_alter_configs([resource])[resource].result(30)


def produce(
    bootstrap: str, topic: str, values: Iterable[bytes], partition: int = 0, **configs: object
) -> list[int]:
    """Produce and wait for every answer; the offsets in the order of the values."""
    answers: list[tuple[object, Message]] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "all", **QUIET, **configs})
    for value in values:
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda *answer: answers.append(answer)
        )
        producer.poll(0)
    assert producer.flush(60) == 0, "records without an answer after 60 s"
    assert [error for error, _ in answers if error is not None] == []
    return sorted(message.offset() or 0 for _, message in answers)


@contextmanager
def share_consumer(
    bootstrap: str, group: str, topics: Sequence[str], **configs: object
) -> Iterator[ShareConsumer]:
    """Provide a share consumer in explicit mode unless told; closed at the end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer(settings | QUIET | configs)
    consumer.subscribe(list(topics))
    try:
        yield consumer
    finally:
        consumer.close()


def take(consumer: ShareConsumer, wanted: int = 1, timeout: float = 20) -> list[Message]:
    """One poll after another until one brings at least `wanted` records; none of them has an error."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        messages = list(consumer.poll(0.5))
        assert [message.error() for message in messages if message.error() is not None] == []
        if messages:
            assert len(messages) >= wanted, f"{len(messages)} records, not {wanted}"
            return messages
    raise AssertionError(f"no record within {timeout} s")


def settle(
    consumer: ShareConsumer,
    count: int,
    outcome: Callable[[Message], AcknowledgeType] = lambda _: ACCEPT,
    timeout: float = 30,
) -> list[Message]:
    """Polls and acknowledges, batch by batch, until `count` records were delivered."""
    seen: list[Message] = []
    until = time.monotonic() + timeout
    while len(seen) < count:
        assert time.monotonic() < until, f"{len(seen)} of {count} records within {timeout} s"
        messages = list(consumer.poll(0.5))
        for message in messages:
            assert message.error() is None, message.error()
            consumer.acknowledge(message, outcome(message))
        commit(consumer)
        seen += messages
    return seen


def unevenly(message: Message) -> AcknowledgeType:
    """An outcome that leaves state of many kinds behind: a fifth rejected, a seventh first released."""
    offset, count = message.offset() or 0, message.delivery_count() or 0
    if offset % 7 == 3 and count < 3:
        return RELEASE
    return REJECT if offset % 5 == 0 else ACCEPT


def leave_share_state(bootstrap: str, topic: str, groups: Iterable[str]) -> None:
    """A new topic of two partitions with 80 records each, and groups that settled most of them."""
    create_topic(bootstrap, topic, 2)
    for partition in range(2):
        produce(bootstrap, topic, [b"x"] * 80, partition)
    for group in groups:
        configure_group(bootstrap, group, share_auto_offset_reset="earliest")
        with share_consumer(bootstrap, group, [topic], **{"max.poll.records": 10}) as consumer:
            settle(consumer, 140, unevenly)


def commit(consumer: ShareConsumer) -> None:
    """Send what was acknowledged; fail where a partition's answer is an error."""
    failed = {
        partition: error for partition, error in consumer.commit_sync(30.0).items() if error is not None
    }
    assert failed == {}


def nothing_comes(consumer: ShareConsumer, seconds: float = 2.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if list(consumer.poll(0.25)):
            return False
    return True
