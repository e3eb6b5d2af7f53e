"""`sharecore spark lag|poison|audit|redrive` on a broker where a group accepted, rejected, gave up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import Result
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession
from tests.harness.batches import keyed_batch
from tests.harness.broker import QUICK_GROUPS, Broker, free_port
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
from tests.harness.state_values import encode_snapshot, encode_update
from tests.spark.conftest import KIND
from typer.testing import CliRunner

from sharecore.admin import BlockingAdmin
from sharecore.cli.app import app
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import (
    SNAPSHOT,
    UPDATE,
    Snapshot,
    Update,
    encode_key,
    pack_batches,
)

pytestmark = pytest.mark.timeout(900)

SETTINGS = QUICK_GROUPS | {
    "share.coordinator.state.topic.num.partitions": "3",
    # a busy machine may exceed the defaults, and archived records would be forgotten
    "share.coordinator.cold.partition.snapshot.interval.ms": "3600000",
    "share.coordinator.state.topic.prune.interval.ms": "3600000",
}
GROUP, TOPIC, AGAIN, PARTITIONS = "workers", "orders", "again", 2
RECORDS, LATE, LIMIT = 60, 6, 3
# an hour ago: records older than the retention would be deleted
SENT_MS = int(time.time() * 1000) - 3_600_000
REJECTED = {(partition, offset) for partition in range(PARTITIONS) for offset in (0, 7, 27, 47)}
EXHAUSTED = {(partition, offset) for partition in range(PARTITIONS) for offset in (11, 31, 51)}


def send(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for partition in range(PARTITIONS):
        for offset in range(first, first + count):
            producer.produce(
                TOPIC,
                b"value %d" % offset,
                b"key",
                partition,
                timestamp=SENT_MS + offset,
                headers=[("kind", b"\xff%d" % offset), ("empty", None)],
            )
    assert producer.flush(60) == 0


def work(bootstrap: str, outcome: Any, settled: int) -> None:
    """Poll until so many records were settled or released for the first time."""
    seen: set[tuple[int, int]] = set()
    until = time.monotonic() + 240
    with share_consumer(bootstrap, GROUP, [TOPIC], **{"max.poll.records": 10}) as consumer:
        while len(seen) < settled:
            assert time.monotonic() < until, f"{len(seen)} of {settled}"
            for message in consumer.poll(0.5):
                assert message.error() is None, message.error()
                kind, offset = outcome(message), message.offset() or 0
                consumer.acknowledge(message, kind)
                if kind != RELEASE or offset >= RECORDS or (message.delivery_count() or 0) >= LIMIT:
                    seen.add((message.partition() or 0, offset))
            commit(consumer)


def first_outcome(message: Message) -> Any:
    place = (message.partition(), message.offset())
    return REJECT if place in REJECTED else RELEASE if place in EXHAUSTED else ACCEPT


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Everything of the first records is settled, some rejected and some given up; the late ones wait."""
    broker = Broker(tmp_path_factory.mktemp("jobs"), KIND, SETTINGS)
    broker.start()
    create_topic(broker.bootstrap, TOPIC, PARTITIONS)
    create_topic(broker.bootstrap, AGAIN, 1)
    configure_group(
        broker.bootstrap, GROUP, share_auto_offset_reset="earliest", share_delivery_count_limit=LIMIT
    )
    send(broker.bootstrap, 0, RECORDS)
    work(broker.bootstrap, first_outcome, PARTITIONS * RECORDS)
    # from here on no late record reaches the limit: each is released once by us, and once when we leave
    configure_group(broker.bootstrap, GROUP, share_delivery_count_limit=10)
    send(broker.bootstrap, RECORDS, LATE)
    work(broker.bootstrap, lambda message: RELEASE, PARTITIONS * LATE)
    yield broker
    broker.kill()


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["spark", command, *map(str, arguments)])


def at(broker: Broker, *arguments: object) -> tuple[object, ...]:
    return ("--bootstrap-server", broker.bootstrap, *arguments)


def place(row: Any) -> tuple[int, int]:
    return row.partition, row.offset


def test_lag(spark: SparkSession, worked: Broker, tmp_path: Path) -> None:
    ended = run("lag", *at(worked, "--group", GROUP, "--out", tmp_path))
    assert ended.exit_code == 0, ended.output
    rows = spark.read.parquet(str(tmp_path / "lag")).orderBy("partition").collect()
    assert [(row.group, row.topic, row.partition) for row in rows] == [(GROUP, TOPIC, 0), (GROUP, TOPIC, 1)]
    with BlockingAdmin(bootstrap_servers=worked.bootstrap) as admin:
        told = {each.partition.partition: each.lag for each in admin.offsets(GROUP)}
    for row in rows:
        assert row.lag == LATE == told[row.partition]
        assert (row.redelivered, row.lagWithoutRedelivered) == (LATE, 0)
        assert row.logEndOffset == RECORDS + LATE
        assert row.oldestOffset == RECORDS
        assert round(row.oldestTimestamp.timestamp() * 1000) == SENT_MS + RECORDS
        assert 3_600_000 - RECORDS - LATE <= row.ageMs < 36_000_000
        assert 0 < row.lagBytes < 100_000
    assert f"{TOPIC}-1" in ended.stdout
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_poison(spark: SparkSession, worked: Broker, tmp_path: Path) -> None:
    ended = run("poison", *at(worked, "--group", GROUP, "--threshold", 1, "--out", tmp_path))
    assert ended.exit_code == 0, ended.output
    rows = spark.read.parquet(str(tmp_path / "records")).collect()
    late = {
        (partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS, RECORDS + LATE)
    }
    assert {place(row) for row in rows} == late
    for row in rows:
        assert (row.group, row.topic, row.deliveryCountLimit) == (GROUP, TOPIC, 10)
        assert 1 <= row.deliveryCount < 10
        assert (bytes(row.key), bytes(row.value)) == (b"key", b"value %d" % row.offset)
        assert [(each.key, each.value and bytes(each.value)) for each in row.headers] == [
            ("kind", b"\xff%d" % row.offset),
            ("empty", None),
        ]
    assert f"value {RECORDS}" in (tmp_path / "report.html").read_text()

    none = run("poison", *at(worked, "--group", GROUP))
    assert none.exit_code == 0, none.output
    assert none.stdout == f"no record of group {GROUP} was delivered 9 times or more and waits\n"


def test_audit_of_a_broker(spark: SparkSession, worked: Broker, tmp_path: Path) -> None:
    ended = run("audit", *at(worked, "--out", tmp_path))
    assert ended.exit_code == 0, ended.output
    assert f"about {PARTITIONS} share partitions: 0 errors, 0 warnings" in ended.stdout
    assert spark.read.parquet(str(tmp_path / "findings")).count() == 0


def test_audit_of_a_history_that_must_not_be(spark: SparkSession, tmp_path: Path) -> None:
    key = SharePartitionKey(GROUP, UUID(int=7), 0)
    records = [
        (SNAPSHOT, encode_snapshot(Snapshot(0, 0, 0, 10, 1, 1, pack_batches([(12, 14, 4, 3)]), 3))),
        (UPDATE, encode_update(Update(0, 0, 9, b"", 3))),
        (UPDATE, encode_update(Update(0, 0, 10, pack_batches([(13, 13, 0, 3)]), 3))),
        (UPDATE, b"\x00\x01"),
    ]
    log = tmp_path / "data/__share_group_state-0/00000000000000000000.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(keyed_batch([(encode_key(kind, key), value) for kind, value in records]))
    ended = run("audit", "--data-dir", tmp_path / "data", "--out", tmp_path / "out")
    assert ended.exit_code == 1, ended.output
    rows = spark.read.parquet(str(tmp_path / "out/findings")).where("severity = 'error'").collect()
    assert sorted((row.offset, row.rule) for row in rows) == [
        (1, "start offset goes back"),
        (2, "settled record changes"),
        (3, "unreadable"),
    ]
    assert "13 were archived and are available" in ended.stdout


def consumed(bootstrap: str, topic: str, count: int) -> list[Message]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest", **QUIET}
    )
    consumer.subscribe([topic])
    found: list[Message] = []
    until = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count}"
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    consumer.close()
    return found


def test_redrive(spark: SparkSession, worked: Broker, tmp_path: Path) -> None:
    # judged by the current limit, not the earlier one: all count as rejected
    configure_group(worked.bootstrap, GROUP, share_delivery_count_limit=LIMIT)
    out = tmp_path / "out"
    arguments = at(worked, "--group", GROUP, "--to-topic", AGAIN, "--out", out)
    ended = run("redrive", *arguments)
    assert ended.exit_code == 0, ended.output
    assert "nothing was produced yet: --execute does it" in ended.stdout
    assert not (out / "redriven").exists()
    assert [line.split() for line in ended.stdout.splitlines()[1:3]] == [
        [f"{TOPIC}-{partition}", AGAIN, "4", "3", "0"] for partition in range(PARTITIONS)
    ]
    only = run("redrive", *arguments, "--outcome", "exhausted", "--topic", TOPIC)
    assert [line.split()[2:] for line in only.stdout.splitlines()[1:3]] == [["0", "3", "0"]] * PARTITIONS

    ended = run("redrive", *arguments, "--execute")
    assert ended.exit_code == 0, ended.output
    assert "14 records produced; 0 offsets hold none any more" in ended.stdout
    messages = consumed(worked.bootstrap, AGAIN, 14)
    assert {origin(message) for message in messages} == REJECTED | EXHAUSTED
    for message in messages:
        _, offset = origin(message)
        assert (message.key(), message.value()) == (b"key", b"value %d" % offset)
        assert message.timestamp()[1] == SENT_MS + offset
        headers: list[Any] = list(message.headers() or [])
        assert headers[:2] == [("kind", b"\xff%d" % offset), ("empty", None)]
        named = dict(headers)
        assert (named["__redrive.topic"], named["__redrive.group"]) == (TOPIC.encode(), GROUP.encode())
        assert named["__redrive.count"] == b"1"
        assert int(named["__redrive.delivery.count"] or 0) == (LIMIT if origin(message) in EXHAUSTED else 1)

    again = run("redrive", *arguments, "--execute")
    assert again.exit_code == 0, again.output
    assert [line.split()[2:] for line in again.stdout.splitlines()[1:3]] == [["0", "0", "7"]] * PARTITIONS
    assert spark.read.parquet(str(out / "redriven")).count() == 14


def origin(message: Message) -> tuple[int, int]:
    headers = dict(message.headers() or [])
    return int(headers["__redrive.partition"] or -1), int(headers["__redrive.offset"] or -1)


def one_line(ended: Result) -> str:
    assert ended.exit_code == 1, ended.output
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


@pytest.mark.parametrize("command", ["lag", "poison", "audit", "redrive"])
def test_what_is_wrong_is_said_in_one_line(command: str, spark: SparkSession, worked: Broker) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    assert f"no broker at {nobody}" in one_line(run(command, "--group", GROUP, "-b", nobody))
    assert "there is no share group nobody" in one_line(run(command, *at(worked, "--group", "nobody")))
    assert "is not a setting" in one_line(run(command, *at(worked, "--group", GROUP, "-X", "no.such=1")))


def test_options_that_make_no_sense(spark: SparkSession, worked: Broker, tmp_path: Path) -> None:
    group = at(worked, "--group", GROUP)
    assert "--execute needs --out" in one_line(run("redrive", *group, "--execute"))
    assert "use --group GROUP or --dead-letters" in one_line(run("redrive", *at(worked)))
    assert "choose letters" in one_line(run("redrive", *group, "--key", "k"))
    assert "--outcome lost" in one_line(run("redrive", *group, "--outcome", "lost"))
    assert "--threshold 99" in one_line(run("poison", *group, "--threshold", 99))
    assert "no such directory" in one_line(run("audit", "--data-dir", tmp_path / "none"))
    assert "exclude each other" in one_line(run("audit", *at(worked, "--data-dir", tmp_path)))


def test_an_empty_result(spark: SparkSession, worked: Broker) -> None:
    lag = run("lag", *at(worked, "--group", GROUP, "--topic", "other"))
    assert (lag.exit_code, lag.stdout) == (0, f"no share partition has state in group {GROUP}\n")
    redrive = run("redrive", *at(worked, "--group", GROUP, "--topic", "other"))
    assert (redrive.exit_code, redrive.stdout) == (
        0,
        f"the history of group {GROUP} has no archived record\n",
    )


def test_whoever_may_not_see_the_group_is_told(spark: SparkSession, tmp_path: Path) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    broker = Broker(tmp_path, KIND, QUICK_GROUPS | settings)
    broker.start()
    try:
        denied = AclBinding(
            ResourceType.GROUP,
            GROUP,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType.DENY,
        )
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        admin.create_acls([denied])[denied].result(30)
        for command in ("lag", "poison", "audit", "redrive"):
            said = one_line(run(command, *at(broker, "--group", GROUP)))
            assert f"the user may not see group {GROUP}: grant DESCRIBE on it" in said
    finally:
        broker.kill()
