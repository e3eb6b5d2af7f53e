"""Ordinary consumers, in both protocols: they share the work, go on where they were, and leave cleanly."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, create_topic, produce
from tests.interop.conftest import KIND, BrokerMaker

FAST = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
}
CLASSIC: dict[str, object] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic-range": CLASSIC,
    "classic-cooperative": CLASSIC | {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
    "consumer-range": {"group.protocol": "consumer", "group.remote.assignor": "range"},
}
_names = (f"ordinary-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("fast"), KIND, FAST)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> dict[str, object]:
    return PROTOCOLS[request.param]


@contextmanager
def member(broker: Broker, group: str, topics: Sequence[str], **configs: object) -> Iterator[Consumer]:
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings | QUIET | configs)
    consumer.subscribe(list(topics))
    try:
        yield consumer
    finally:
        consumer.close()


def drain(*consumers: Consumer, count: int, seconds: float = 30) -> list[list[bytes | None]]:
    """Values that each consumer got, until there are `count` of them in all."""
    got: list[list[bytes | None]] = [[] for _ in consumers]
    until = time.monotonic() + seconds
    while sum(map(len, got)) < count:
        assert time.monotonic() < until, f"{sum(map(len, got))} of {count} records within {seconds} s"
        for consumer, values in zip(consumers, got, strict=True):
            for message in consumer.consume(100, 0.1):
                assert message.error() is None, message.error()
                values.append(message.value())
    return got


def settled(*consumers: Consumer, partitions: int, seconds: float = 30) -> list[int]:
    """Wait until the consumers have so many partitions between them, each some; give how many each has."""
    until = time.monotonic() + seconds
    while True:
        for consumer in consumers:
            message = consumer.poll(0.1)
            assert message is None or message.error() is None
        loads = [len(consumer.assignment()) for consumer in consumers]
        if sum(loads) == partitions and min(loads) > 0:
            return loads
        assert time.monotonic() < until, f"assignments of {loads}"


def test_members_share_the_partitions_and_take_over(fast: Broker, protocol: dict[str, object]) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic, 4)
    with member(fast, group, [topic], **protocol) as first:
        assert settled(first, partitions=4) == [4]
        with member(fast, group, [topic], **protocol) as second:
            assert settled(first, second, partitions=4) == [2, 2]
            for partition in range(4):
                produce(fast.bootstrap, topic, [b"%d" % partition], partition)
            got = drain(first, second, count=4)
            assert sorted(map(len, got)) == [2, 2]
            first.commit(asynchronous=False)
            second.commit(asynchronous=False)
        assert settled(first, partitions=4) == [4]


def test_a_group_goes_on_where_it_was_after_a_restart(
    new_broker: BrokerMaker, protocol: dict[str, object]
) -> None:
    broker = new_broker(**FAST)
    broker.start()
    create_topic(broker.bootstrap, "t", 2)
    for partition in (0, 1):
        produce(broker.bootstrap, "t", [b"%d" % number for number in range(50)], partition)
    with member(broker, "g", ["t"], **protocol) as consumer:
        assert len(drain(consumer, count=100)[0]) == 100
        consumer.commit(asynchronous=False)
        broker.kill()
        broker.start()
        produce(broker.bootstrap, "t", [b"later"], 1)
        # the member need not rejoin: the broker still knows it
        assert drain(consumer, count=1) == [[b"later"]]
        consumer.commit(asynchronous=False)
    broker.kill()
    broker.start()
    produce(broker.bootstrap, "t", [b"last"], 0)
    with member(broker, "g", ["t"], **protocol) as consumer:
        assert drain(consumer, count=1) == [[b"last"]]


def test_a_consumer_that_is_killed_is_missed(fast: Broker, protocol: dict[str, object]) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic, 2)
    with member(fast, group, [topic], **protocol) as first:
        settled(first, partitions=2)
        # it joins, and then stays silent
        script = (
            "import os, sys, time, confluent_kafka as k\n"
            f"c = k.Consumer({dict(protocol) | {'bootstrap.servers': fast.bootstrap, 'group.id': group}!r})\n"
            f"c.subscribe([{topic!r}])\n"
            "while not c.assignment(): c.poll(0.1)\n"
            "os._exit(0)\n"
        )

        silent = subprocess.Popen([sys.executable, "-c", script])
        while silent.poll() is None:
            first.poll(0.1)
        assert silent.returncode == 0
        settled(first, partitions=2)


def test_static_members_come_back_without_a_rebalance(fast: Broker) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic, 2)
    lost: list[object] = []
    with member(fast, group, [topic], **CLASSIC, **{"group.instance.id": "a"}) as first:
        settled(first, partitions=2)
        second = Consumer(
            {
                "bootstrap.servers": fast.bootstrap,
                "group.id": group,
                "group.instance.id": "b",
                **CLASSIC,
                **QUIET,
            }
        )
        second.subscribe([topic])
        settled(first, second, partitions=2)
        first.subscribe([topic], on_revoke=lambda _, partitions: lost.extend(partitions))
        settled(first, second, partitions=2)
        lost.clear()
        # a static member does not leave when it closes
        second.close()
        with member(fast, group, [topic], **CLASSIC, **{"group.instance.id": "b"}) as again:
            settled(first, again, partitions=2)
        assert lost == []


def test_offsets_without_a_group(fast: Broker) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic, 2)
    consumer = Consumer({"bootstrap.servers": fast.bootstrap, "group.id": group, **QUIET})
    wanted = [TopicPartition(topic, 0, 5, metadata="a note"), TopicPartition(topic, 1, 7)]
    consumer.commit(offsets=wanted, asynchronous=False)
    committed = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], 10)
    assert [(each.offset, each.metadata) for each in committed] == [(5, "a note"), (7, None)]
    for wrong, code in (
        (TopicPartition(topic, 9, 1), KafkaError.UNKNOWN_TOPIC_OR_PART),
        (TopicPartition(topic, 0, 5, metadata="x" * 5000), KafkaError.OFFSET_METADATA_TOO_LARGE),
    ):
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[wrong], asynchronous=False)
        assert refused.value.args[0].code() == code
    consumer.close()


def test_operators_see_alter_and_delete(fast: Broker, protocol: dict[str, object]) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic, 2)
    produce(fast.bootstrap, topic, [b"x"] * 10)
    admin = AdminClient({"bootstrap.servers": fast.bootstrap, **QUIET})
    with member(fast, group, [topic], **protocol, **{"client.id": "me"}) as consumer:
        drain(consumer, count=10)
        consumer.commit(asynchronous=False)
        described = admin.describe_consumer_groups([group])[group].result(10)
        assert described.state in (ConsumerGroupState.STABLE, ConsumerGroupState.PREPARING_REBALANCING)
        (one,) = described.members
        assert (one.client_id, one.host) == ("me", "/127.0.0.1")
        assert sorted(each.partition for each in one.assignment.topic_partitions) == [0, 1]
        with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([group])[group].result(10)
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([moved])[group].result(10)
    asked = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([asked])[group].result(10)
    assert found.topic_partitions is not None
    assert {each.partition: each.offset for each in found.topic_partitions}[0] == 3
    listed = admin.list_consumer_groups().result(10)
    assert group in {each.group_id for each in listed.valid}
    admin.delete_consumer_groups([group])[group].result(10)
    assert not admin.list_consumer_group_offsets([asked])[group].result(10).topic_partitions


def test_deleted_topics_take_their_offsets_along(fast: Broker) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic)
    consumer = Consumer({"bootstrap.servers": fast.bootstrap, "group.id": group, **QUIET})
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": fast.bootstrap, **QUIET})
    admin.delete_topics([topic])[topic].result(10)
    create_topic(fast.bootstrap, topic)
    assert consumer.committed([TopicPartition(topic, 0)], 10)[0].offset == OFFSET_INVALID
    consumer.close()


@pytest.mark.parametrize("name", ["classic", "consumer"])
def test_javas_consumer(fast: Broker, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    topic, group = next(_names), next(_names)
    create_topic(fast.bootstrap, topic, 3)
    for partition in range(3):
        produce(fast.bootstrap, topic, [b"%d" % number for number in range(100)], partition)
    config = tmp_path_factory.mktemp("java") / "consumer.properties"
    config.write_text(f"group.protocol={name}\nauto.offset.reset=earliest\n")
    common = ("--bootstrap-server", fast.bootstrap, "--topic", topic, "--group", group)
    printed = java.run(
        f"{java.TOOLS}.consumer.ConsoleConsumer",
        *common,
        *("--max-messages", "300", "--timeout-ms", "20000", "--command-config", str(config)),
    )
    assert "Processed a total of 300 messages" in printed
    produce(fast.bootstrap, topic, [b"one more"], 2)
    printed = java.run(
        f"{java.TOOLS}.consumer.ConsoleConsumer",
        *common,
        *("--max-messages", "1", "--timeout-ms", "20000", "--command-config", str(config)),
    )
    assert "one more" in printed
    described = java.run(
        f"{java.TOOLS}.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", fast.bootstrap, "--describe", "--group", group),
    )
    rows = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert [row[2:6] for row in rows] == [
        [str(p), str(100 + (p == 2)), str(100 + (p == 2)), "0"] for p in range(3)
    ]
