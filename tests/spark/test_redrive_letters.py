"""`sharecore spark redrive --dead-letters`: letters with their records and without, back to a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import (
    ACCEPT,
    QUIET,
    REJECT,
    RELEASE,
    commit,
    configure_group,
    create_topic,
    share_consumer,
)
from tests.spark.conftest import KIND
from typer.testing import CliRunner

from sharecore.cli.app import app

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(KIND != "sharecore", reason="Apache Kafka 4.3.1 has no dead letters"),
]
TOPIC, QUEUE, PARTITIONS, RECORDS = "orders", "dlq.orders", 2, 12
REJECTED, EXHAUSTED = (1, 5), (3,)
BARE, COPIES = "bare", "copies"
LETTERS = PARTITIONS * (len(REJECTED) + len(EXHAUSTED))
"""Of each group."""
SETTINGS = QUICK_GROUPS | {"errors.deadletterqueue.auto.create.topics.enable": "true", "num.partitions": "2"}


def send(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for partition in range(PARTITIONS):
        for offset in range(RECORDS):
            headers: list[Any] = [("kind", b"\xff%d" % offset), ("empty", None)]
            producer.produce(TOPIC, b"value %d" % offset, b"key %d" % offset, partition, headers=headers)
    assert producer.flush(60) == 0


def outcome(message: Message) -> Any:
    offset = message.offset()
    return REJECT if offset in REJECTED else RELEASE if offset in EXHAUSTED else ACCEPT


def work(bootstrap: str, group: str) -> None:
    """Settles every record."""
    left, until = PARTITIONS * (RECORDS + len(EXHAUSTED)), time.monotonic() + 120
    with share_consumer(bootstrap, group, [TOPIC]) as consumer:
        while left:
            assert time.monotonic() < until, left
            for message in consumer.poll(0.5):
                consumer.acknowledge(message, outcome(message))
                left -= 1
            commit(consumer)


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Two groups have their letters in one topic: one with the records, one without."""
    broker = Broker(tmp_path_factory.mktemp("letters"), KIND, SETTINGS)
    broker.start()
    create_topic(broker.bootstrap, TOPIC, PARTITIONS)
    send(broker.bootstrap)
    for group in (BARE, COPIES):
        configure_group(
            broker.bootstrap,
            group,
            share_auto_offset_reset="earliest",
            share_delivery_count_limit=2,
            errors_deadletterqueue_topic_name=QUEUE,
            errors_deadletterqueue_copy_record_enable="true" if group == COPIES else "false",
        )
        work(broker.bootstrap, group)
    until = time.monotonic() + 30
    while written(broker) < 2 * LETTERS:
        assert time.monotonic() < until, written(broker)
        time.sleep(0.1)
    yield broker
    broker.kill()


def written(broker: Broker) -> int:
    return sum(high - low for low, high in ends(broker.bootstrap, QUEUE))


def ends(bootstrap: str, topic: str) -> list[tuple[int, int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", **QUIET})
    parts = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    found = [consumer.get_watermark_offsets(part, timeout=20) for part in parts]
    consumer.close()
    return found


def consumed(bootstrap: str, topic: str, begin: list[tuple[int, int]]) -> list[Message]:
    """What a topic has been given since its ends were `begin`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **QUIET})
    consumer.assign([TopicPartition(topic, index, end) for index, (_, end) in enumerate(begin)])
    wanted = sum(high for _, high in ends(bootstrap, topic)) - sum(high for _, high in begin)
    found: list[Message] = []
    while len(found) < wanted:
        found += consumer.consume(wanted - len(found), 5)
    consumer.close()
    return found


def redrive(broker: Broker, *arguments: object) -> str:
    ended = run(broker, *arguments)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def run(broker: Broker, *arguments: object) -> Result:
    command = ["spark", "redrive", "--dead-letters", QUEUE, "-b", broker.bootstrap, *map(str, arguments)]
    return CliRunner().invoke(app, command)


def counts(shown: str) -> list[list[str]]:
    """Rejected, exhausted, done before: a row a share partition."""
    rows = [line.split() for line in shown.splitlines()]
    return [row[2:] for row in rows if row and row[0].startswith(f"{TOPIC}-")]


@pytest.mark.parametrize("group", [COPIES, BARE])
def test_records_come_back_whole_and_once(
    spark: SparkSession, queued: Broker, tmp_path: Path, group: str
) -> None:
    out, before = tmp_path / "out", ends(queued.bootstrap, TOPIC)
    only = "--group", group, "--out", out
    shown = redrive(queued, *only)
    assert counts(shown) == [["2", "1", "0"]] * PARTITIONS
    assert "nothing was produced yet: --execute does it" in shown
    assert ends(queued.bootstrap, TOPIC) == before
    assert counts(redrive(queued, *only, "--outcome", "exhausted")) == [["0", "1", "0"]] * PARTITIONS

    assert f"{LETTERS} records produced; 0 offsets" in redrive(queued, *only, "--execute")
    back = consumed(queued.bootstrap, TOPIC, before)
    assert {origin(message) for message in back} == {
        (partition, offset) for partition in range(PARTITIONS) for offset in REJECTED + EXHAUSTED
    }
    for message in back:
        partition, offset = origin(message)
        assert message.partition() == partition
        assert (message.key(), message.value()) == (b"key %d" % offset, b"value %d" % offset)
        headers: list[Any] = list(message.headers() or [])
        assert headers[:2] == [("kind", b"\xff%d" % offset), ("empty", None)]
        named = dict(headers)
        assert not [name for name in named if name.startswith("__dlq.")]
        assert (named["__redrive.topic"], named["__redrive.group"]) == (TOPIC.encode(), group.encode())
        assert named["__redrive.delivery.count"] == (b"2" if offset in EXHAUSTED else b"1")
        assert named["__redrive.count"] == b"1"

    again = redrive(queued, *only, "--execute")
    assert counts(again) == [["0", "0", "3"]] * PARTITIONS
    assert spark.read.parquet(str(out / "redriven-letters")).count() == LETTERS
    # the other group's records remain
    both = redrive(queued, "--out", out)
    assert counts(both) == [["2", "1", "3"]] * PARTITIONS


def origin(message: Message) -> tuple[int, int]:
    headers = dict(message.headers() or [])
    return int(headers["__redrive.partition"] or -1), int(headers["__redrive.offset"] or -1)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (["--key", "key 5"], [["1", "0", "0"]] * PARTITIONS),
        (["--filter", "[35]$"], [["1", "1", "0"]] * PARTITIONS),
        (["--header", "kind=x"], []),
        (["--topic", "others"], []),
        (["--outcome", "rejected"], [["4", "0", "0"]] * PARTITIONS),
        (["--until", (datetime.now() - timedelta(days=1)).strftime("%Y-%m-%d")], []),
        (["--since", (datetime.now() - timedelta(days=1)).strftime("%Y-%m-%d")], [["4", "2", "0"]] * 2),
    ],
    ids=count(),
)
def test_letters_are_chosen(
    spark: SparkSession, queued: Broker, options: list[str], rows: list[list[str]]
) -> None:
    shown = redrive(queued, *options)
    assert counts(shown) == rows
    assert (f"topic {QUEUE} holds no such letter" in shown) == (rows == [])


def test_a_topic_that_is_not_there_is_named(spark: SparkSession, queued: Broker, tmp_path: Path) -> None:
    ended = run(queued, "--to-topic", "nowhere", "--execute", "--out", tmp_path)
    assert ended.exit_code == 1
    assert "topic nowhere" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_to_another_topic_where_records_are_gone(spark: SparkSession, queued: Broker, tmp_path: Path) -> None:
    create_topic(queued.bootstrap, "again", PARTITIONS)
    before = ends(queued.bootstrap, TOPIC)
    admin = AdminClient({"bootstrap.servers": queued.bootstrap, **QUIET})
    gone = TopicPartition(TOPIC, 0, RECORDS)
    admin.delete_records([gone])[gone].result(20)
    options = "--to-topic", "again", "--execute", "--out", tmp_path / "out"
    kept = LETTERS + LETTERS // PARTITIONS
    assert f"{kept} records produced; {2 * LETTERS - kept} offsets hold none" in redrive(queued, *options)
    assert [high for _, high in ends(queued.bootstrap, TOPIC)] == [high for _, high in before]
    back = consumed(queued.bootstrap, "again", [(0, 0)] * PARTITIONS)
    groups = [(origin(message)[0], dict(message.headers() or ())["__redrive.group"]) for message in back]
    each = LETTERS // PARTITIONS
    assert sorted(groups) == sorted([(0, b"copies"), (1, b"copies"), (1, b"bare")] * each)


def test_records_of_a_topic_that_was_made_again_are_other_ones(
    spark: SparkSession, queued: Broker, tmp_path: Path
) -> None:
    """They have the offsets that letters without a record name; only the letters with one are redriven."""
    admin = AdminClient({"bootstrap.servers": queued.bootstrap, **QUIET})
    admin.delete_topics([TOPIC])[TOPIC].result(20)
    for topic in (TOPIC, "others"):
        create_topic(queued.bootstrap, topic, PARTITIONS)
    send(queued.bootstrap)
    options = "--to-topic", "others", "--execute", "--out", tmp_path / "out"
    assert f"{LETTERS} records produced; {LETTERS} offsets hold none" in redrive(queued, *options)
    back = consumed(queued.bootstrap, "others", [(0, 0)] * PARTITIONS)
    assert {dict(message.headers() or ())["__redrive.group"] for message in back} == {b"copies"}
