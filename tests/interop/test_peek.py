"""`sharecore groups peek`, on sharecore and on Apache Kafka."""

from __future__ import annotations

import json
import os
import subprocess

from confluent_kafka import AcknowledgeType
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import produce, settle, share_consumer, take
from tests.interop.conftest import KIND

from sharecore.client.blocking import ShareConsumer

KINDS = {b"bad": AcknowledgeType.RELEASE, b"poisoned": AcknowledgeType.REJECT}


def peek(broker: Broker, *arguments: str) -> tuple[int, str, str]:
    """Status and output."""
    environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
    ended = subprocess.run(
        [SHARECORE, "groups", "peek", *arguments],
        capture_output=True, text=True, timeout=60, env=environment,
    )  # fmt: skip
    return ended.returncode, ended.stdout, ended.stderr


def handle(broker: Broker, topic: str, group: str) -> None:
    """One look at each record: those that are bad are given back, poisoned ones rejected."""
    with share_consumer(
        broker.bootstrap, group, [topic], **{"share.acknowledgement.mode": "explicit"}
    ) as consumer:
        for record in take(consumer):
            value = record.value()
            assert value is not None
            consumer.acknowledge(record, KINDS.get(value, AcknowledgeType.ACCEPT))
        consumer.commit_sync()


def test_what_comes_next_with_its_records_and_nothing_is_taken(
    broker: Broker, topic: str, group: str
) -> None:
    produce(broker.bootstrap, topic, [b"good", b"bad", b"poisoned", b"good"])
    handle(broker, topic, group)
    produce(broker.bootstrap, topic, [b"next", b'{"a": "\xc3\xa9"}'])
    # the same twice: peeking changes nothing
    for _ in range(2):
        status, shown, told = peek(broker, group, topic, "--format", "json")
        assert (status, told) == (0, "")
        lines = [json.loads(line) for line in shown.splitlines()]
        found = [(line["offset"], line["state"], line["value"]) for line in lines]
        assert found == [(1, "available", "bad"), (4, "new", "next"), (5, "new", '{"a": "é"}')]
        assert lines[0]["deliveries"] >= 1
    status, shown, _ = peek(broker, group, topic, "--settled", "--max", "4")
    assert status == 0
    # Apache Kafka writes a new start offset only with the next change
    rows = [line.split()[:2] for line in shown.splitlines()[1:]]
    start = [[f"{topic}-0@0", "acknowledged"]]
    assert [each for each in rows if each not in start][:3] == [
        [f"{topic}-0@1", "available"], [f"{topic}-0@2", "archived"], [f"{topic}-0@3", "acknowledged"],
    ]  # fmt: skip
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        assert sorted(record.offset() or 0 for record in settle(consumer, 3)) == [1, 4, 5]


def test_a_group_with_nothing_to_do(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"])
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 1)
    status, shown, _ = peek(broker, group, topic)
    assert status == 0
    assert shown == "nothing waits\n" or "new" in shown, (
        "Apache Kafka writes a start offset with the next change"
    )


def test_what_is_not_there_is_one_line(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"])
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 1)
    for arguments, expected, word in (
        (("no-such-group", topic), 1, "no-such-group"),
        ((group, "no-such-topic"), 1, "no-such-topic"),
        ((group, topic, "--partition", "9"), 1, f"{topic} has no partition 9"),
        ((group, topic, "--format", "xml"), 2, "--format xml: unknown"),
    ):
        status, shown, told = peek(broker, *arguments)
        assert (status, shown, told.count("\n")) == (expected, "", 1), told
        assert word in told


def test_what_is_leased_is_told_from_what_is_new_where_the_broker_knows(
    broker: Broker, topic: str, group: str
) -> None:
    produce(broker.bootstrap, topic, [b"held", b"held too", b"next"])
    settings = {"share.acknowledgement.mode": "explicit", "share.acquire.mode": "record_limit"}
    with ShareConsumer(
        {**settings, "bootstrap.servers": broker.bootstrap, "group.id": group, "prefetch.records": 0}
    ) as consumer:
        consumer.subscribe([topic])
        held = consumer.poll(2, timeout=30)
        assert [record.value for record in held] == [b"held", b"held too"]
        status, shown, told = peek(broker, group, topic, "--output", "json")
        assert (status, told) == (0, "")
        found = [(each["offset"], each["state"], each["deliveries"]) for each in json.loads(shown)]
        if KIND == "apache":
            # it has no state of a share partition before the first acknowledgement
            assert found == []
        else:
            assert found == [(0, "acquired", 1), (1, "acquired", 1), (2, "new", 0)]
        consumer.release(held[0])
        consumer.accept(held[1])
        assert set(consumer.commit_sync(30).values()) == {None}
    status, shown, _ = peek(broker, group, topic, "--output", "json")
    assert [(each["offset"], each["state"]) for each in json.loads(shown)] == [(0, "available"), (2, "new")]
