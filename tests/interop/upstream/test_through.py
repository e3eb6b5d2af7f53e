"""Stock clients that know a node alone: what is not about share groups is done by the cluster behind it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import (
    ACCEPT,
    QUIET,
    configure_group,
    configure_topic,
    create_topic,
    produce,
    share_consumer,
    take,
)
from tests.harness.tier import ONE_COPY

TIER = QUICK_GROUPS | ONE_COPY | {"sharecore.tier.slots": "2", "node.id": "1"}


@pytest.fixture(scope="module")
def node(existing: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    own = {"sharecore.tier.state.topic": "__through"}
    home = tmp_path_factory.mktemp("node")
    made = Broker(home, "sharecore", TIER | own, ("--upstream", existing.bootstrap))
    made.start()
    yield made
    made.kill()


def consumer(broker: Broker, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
            **settings,
        }
    )


def poll(reader: Consumer, count: int, seconds: float = 20) -> list[Message]:
    """So many records; none of them has an error."""
    found: list[Message] = []
    end = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        message = reader.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    assert len(found) == count
    return found


def test_records_go_through_as_they_are(existing: Broker, node: Broker, name: str) -> None:
    """Compressed and with headers; and a share group of the tier reads the same."""
    create_topic(node.bootstrap, name, 3)
    producer = Producer({"bootstrap.servers": node.bootstrap, "compression.type": "lz4", **QUIET})
    for number in range(300):
        producer.produce(
            name, b"%d" % number, key=b"k%d" % number, partition=number % 3, headers={"n": b"%d" % number}
        )
    assert producer.flush(20) == 0

    def seen(broker: Broker) -> dict[tuple[int, int], tuple[object, ...]]:
        reader = consumer(broker, "none")
        reader.assign([TopicPartition(name, index, 0) for index in range(3)])
        found = poll(reader, 300)
        reader.close()
        return {
            (each.partition() or 0, each.offset() or 0): (
                each.key(),
                each.value(),
                each.headers(),
                each.timestamp(),
            )
            for each in found
        }

    assert seen(node) == seen(existing)
    configure_group(node.bootstrap, f"{name}-share", share_auto_offset_reset="earliest")
    with share_consumer(node.bootstrap, f"{name}-share", [name]) as sharing:
        values: set[bytes | None] = set()
        while len(values) < 300:
            for message in take(sharing):
                values.add(message.value())
                sharing.acknowledge(message, ACCEPT)


def test_a_consumer_group_goes_on_where_it_was(
    existing: Broker, node: Broker, name: str, request: pytest.FixtureRequest
) -> None:
    group_goes_on(existing, node, name, "classic")
    # 3.9.1 has the newer APIs as a preview, disabled
    if "3.9.1" not in request.node.name:
        group_goes_on(existing, node, f"{name}-consumer", "consumer")


def group_goes_on(existing: Broker, node: Broker, name: str, protocol: str) -> None:
    """Two members, what they commit, and one that comes after them."""
    create_topic(existing.bootstrap, name, 2)
    produce(node.bootstrap, name, [b"%d" % number for number in range(20)])
    more = {"group.protocol": protocol}
    readers = [consumer(node, name, **more), consumer(node, name, **more)]
    for reader in readers:
        reader.subscribe([name])
    end = time.monotonic() + 30
    found: list[Message] = []
    while time.monotonic() < end and not (
        # some are redelivered when a partition moves from one member to the other
        len({message.value() for message in found}) >= 20
        and [len(reader.assignment()) for reader in readers] == [1, 1]
    ):
        polled = [reader.poll(0.1) for reader in readers]
        found += [message for message in polled if message is not None and message.error() is None]
    assert [len(reader.assignment()) for reader in readers] == [1, 1]
    assert len({message.value() for message in found}) == 20
    for reader in readers:
        if TopicPartition(name, 0) in reader.assignment():
            reader.commit(offsets=[TopicPartition(name, 0, 15)], asynchronous=False)
    for reader in readers:
        reader.close()
    # the cluster itself has the committed offsets
    direct = consumer(existing, name)
    assert direct.committed([TopicPartition(name, 0)], 10)[0].offset == 15
    direct.close()
    after = consumer(node, name, **more)
    after.subscribe([name])
    assert [message.offset() for message in poll(after, 5)] == list(range(15, 20))
    after.close()
    admin = AdminClient({"bootstrap.servers": node.bootstrap, **QUIET})
    listed = {each.group_id for each in admin.list_consumer_groups().result(10).valid}
    assert name in listed
    assert "sharecore-__through" not in listed
    admin.delete_consumer_groups([name])[name].result(10)


def test_transactions(existing: Broker, node: Broker, name: str) -> None:
    """One aborted, one committed with the offsets of what it was made of."""
    for topic in (name, f"{name}-out"):
        create_topic(existing.bootstrap, topic)
    produce(node.bootstrap, name, [b"in"])
    reader = consumer(node, name)
    reader.subscribe([name])
    (read,) = poll(reader, 1)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": name, **QUIET})
    producer.init_transactions(30)
    for value, ends in ((b"aborted", producer.abort_transaction), (b"out", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(f"{name}-out", value)
        position = TopicPartition(name, 0, (read.offset() or 0) + 1)
        producer.send_offsets_to_transaction([position], reader.consumer_group_metadata(), 30)
        ends(30)
    assert reader.committed([TopicPartition(name, 0)], 10)[0].offset == 1
    reader.close()
    committed = consumer(node, "none", **{"isolation.level": "read_committed"})
    committed.assign([TopicPartition(f"{name}-out", 0, 0)])
    assert [message.value() for message in poll(committed, 1)] == [b"out"]
    committed.close()
    fenced = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": name, **QUIET})
    fenced.init_transactions(30)
    producer.begin_transaction()
    producer.produce(f"{name}-out", b"late")
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)


def test_topics_are_made_and_changed_on_the_cluster(existing: Broker, node: Broker, name: str) -> None:
    own = {"errors.deadletterqueue.group.enable": "true"}
    create_topic(node.bootstrap, name, 2, **{"retention.ms": "3600000"}, **own)
    admin = AdminClient({"bootstrap.servers": node.bootstrap, **QUIET})
    direct = AdminClient({"bootstrap.servers": existing.bootstrap, **QUIET})
    resource = ConfigResource(ResourceType.TOPIC, name)

    def settings(through: AdminClient) -> dict[str, str]:
        return {
            key: each.value for key, each in through.describe_configs([resource])[resource].result(10).items()
        }

    assert settings(direct)["retention.ms"] == settings(admin)["retention.ms"] == "3600000"
    assert settings(admin)["errors.deadletterqueue.group.enable"] == "true"
    configure_topic(node.bootstrap, name, retention_ms="7200000")
    configure_topic(node.bootstrap, name, errors_deadletterqueue_group_enable="false")
    assert settings(direct)["retention.ms"] == settings(admin)["retention.ms"] == "7200000"
    assert settings(admin)["errors.deadletterqueue.group.enable"] == "false"
    admin.create_partitions([NewPartitions(name, 4)])[name].result(10)
    assert len(admin.list_topics(name, 10).topics[name].partitions) == 4
    produce(node.bootstrap, name, [b"%d" % number for number in range(10)])
    deleted = admin.delete_records([TopicPartition(name, 0, 4)])
    assert next(iter(deleted.values())).result(10).low_watermark == 4
    reader = consumer(node, "none")
    assert reader.get_watermark_offsets(TopicPartition(name, 0), 10) == (4, 10)
    reader.close()
    admin.delete_topics([name])[name].result(10)
    with pytest.raises(KafkaException):
        admin.create_topics([NewTopic("__hidden", 1, 1)])["__hidden"].result(10)
    assert name not in admin.list_topics(timeout=10).topics
    # and again with the same name, at once
    create_topic(node.bootstrap, name)
    assert produce(node.bootstrap, name, [b"first"]) == [0]


def test_share_state_can_be_read_where_tools_look_for_it(node: Broker, name: str) -> None:
    create_topic(node.bootstrap, name)
    produce(node.bootstrap, name, [b"one"])
    configure_group(node.bootstrap, name, share_auto_offset_reset="earliest")
    with share_consumer(node.bootstrap, name, [name]) as sharing:
        for message in take(sharing, 1):
            sharing.acknowledge(message, ACCEPT)
        sharing.commit_sync(10.0)
    reader = consumer(node, f"{name}-reads")
    places = [TopicPartition("__share_group_state", index) for index in range(2)]
    ends = [reader.get_watermark_offsets(place, 10)[1] for place in places]
    assert sum(ends) > 0
    reader.assign([TopicPartition(place.topic, place.partition, 0) for place in places])
    assert poll(reader, 2)
    # it commits offsets as for any topic
    reader.commit(offsets=[TopicPartition(places[0].topic, 0, 3)], asynchronous=False)
    assert [place.offset for place in reader.committed(places, 10)] == [3, OFFSET_INVALID]
    reader.close()
    producer = Producer({"bootstrap.servers": node.bootstrap, **QUIET})
    told: list[object] = []
    producer.produce(
        "__share_group_state", b"x", on_delivery=lambda error, _: told.append(error and error.name())
    )
    producer.flush(10)
    assert told == ["TOPIC_EXCEPTION"]
