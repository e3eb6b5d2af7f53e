"""The reader, called as Spark calls it."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from tests.harness.broker import ROOT, Broker
from tests.harness.clients import QUIET, configure_group, create_topic
from tests.spark.conftest import Topic
from tests.spark.test_faults import settled

from sharecore.spark.offset import Offset
from sharecore.spark.reader import ShareGroupReader

pytestmark = pytest.mark.timeout(200)
WAIT_SECONDS_MAX = 60
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def sigterm() -> Iterator[None]:
    """Provide a reader sets the handler, as in a process that is its own."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


class Query:
    """Batches of a reader, without Spark around it."""

    def __init__(self, topic: Topic, at: dict[str, Any] | None = None, **options: str) -> None:
        self.reader = ShareGroupReader(topic.options(**options))
        self.at = self.reader.initialOffset() if at is None else at
        self.end = self.at

    def lease(self) -> dict[str, Any]:
        """Return the next batch's offset, which commits the batch before."""
        self.at = self.end
        until = time.monotonic() + WAIT_SECONDS_MAX
        while self.end == self.at:
            assert time.monotonic() < until, "nothing was leased"
            self.end = self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        return self.end

    def rows(self) -> Rows:
        """What the batch's tasks read."""
        parts = self.reader.partitions(self.at, self.end)
        return [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]

    def commit(self) -> None:
        """Commit the batch, behind which there is nothing."""
        found = self.reader.latestOffset(self.end, self.reader.getDefaultReadLimit())
        assert found == self.end


def values(rows: Rows) -> Counter[bytes]:
    return Counter(row["value"] for row in rows)


def wait_until_settled(topic: Topic) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not settled(topic):
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
def test_sigterm_twice_acknowledges_what_the_checkpoint_holds(topic: Topic, committed: bool) -> None:
    sent = topic.send(1200)
    # unreleased records stay locked longer than this test waits
    configure_group(topic.broker.bootstrap, topic.group, share_record_lock_duration_ms=60_000)
    options = json.dumps(topic.options(maxRecordsPerTrigger="300"))
    command = [sys.executable, "-m", "tests.spark.lessee", options, str(int(committed))]
    lessee = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert lessee.stdout is not None
        batch = Offset.from_json(json.loads(lessee.stdout.readline()))
        for _ in range(2):
            os.kill(lessee.pid, signal.SIGTERM)
        assert lessee.wait(30) == 0
    finally:
        lessee.kill()
    leased = sum(ranges.offsets for ranges in batch.leased.values())
    assert 0 < leased <= 300
    query, found = Query(topic), Counter[bytes]()
    wanted = len(sent) - (leased if committed else 0)
    began = time.monotonic()
    while sum(found.values()) < wanted:
        query.lease()
        found += values(query.rows())
    assert time.monotonic() - began < 45, "the leases were not released: their locks ran out"
    query.commit()
    query.reader.stop()
    assert set(found.values()) == {1}
    assert sum(found.values()) == wanted
    assert settled(topic)


def test_a_batch_is_run_again_with_the_same_rows(topic: Topic) -> None:
    sent = topic.send(300)
    first = Query(topic, maxRecordsPerTrigger="100")
    first.lease()
    before = first.rows()
    first.reader.stop()
    # Spark requests the rows of the batch at once, then the following ones
    again = Query(topic, at=first.at)
    again.end = first.end
    assert again.rows() == before
    found = values(before)
    while sum(found.values()) < len(sent):
        again.lease()
        found += values(again.rows())
    again.commit()
    assert found == Counter(sent)
    wait_until_settled(topic)
    again.reader.stop()


def test_tasks_are_as_many_as_wanted_and_of_one_size(topic: Topic) -> None:
    topic.send(100)
    query = Query(topic, minPartitions="11")
    parts: list[Any] = []
    while not parts:
        query.lease()
        parts = query.reader.partitions(query.at, query.end)
    records = sum(ranges.offsets for ranges in Offset.from_json(query.end).leased.values())
    sizes = [sum(last - first + 1 for first, last, _ in part.ranges) for part in parts]
    assert sum(sizes) == records
    assert len(sizes) >= min(11, records)
    query.reader.stop()


def test_a_lock_that_ran_out_is_told_of_with_what_to_do(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    topic.send(30)
    configure_group(topic.broker.bootstrap, topic.group, share_record_lock_duration_ms=1000)
    query = Query(topic, lock_renew="false")
    query.lease()
    rows = query.rows()
    time.sleep(3)
    with caplog.at_level(logging.WARNING, "sharecore.spark"):
        until = time.monotonic() + WAIT_SECONDS_MAX
        while not settled(topic):
            assert time.monotonic() < until
            before, query.at = query.end, query.end
            query.end = query.reader.latestOffset(query.at, query.reader.getDefaultReadLimit())
            rows += query.rows() if query.end != before else []
    query.reader.stop()
    assert "If the lock ran out: raise the share.record.lock.duration.ms of group" in caplog.text
    assert set(values(rows).values()) == {1}


def test_records_that_were_deleted_end_the_query_unless_told_otherwise(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = Topic(broker, spark, tmp_path, 1)
    sent = topic.send(30)
    query = Query(topic)
    query.lease()
    ((_, ranges),) = Offset.from_json(query.end).leased.items()
    admin = AdminClient({"bootstrap.servers": topic.broker.bootstrap, **QUIET})
    partition = TopicPartition(topic.name, 0, 4)
    admin.delete_records([partition])[partition].result(30)
    with pytest.raises(RuntimeError, match=r"records 0 to 3 were deleted.*failOnDataLoss=false goes on"):
        query.rows()
    query.reader.stop()
    lenient = Query(topic, at=query.at, failOnDataLoss="false")
    lenient.end = query.end
    assert values(lenient.rows()) == Counter(sent[4 : ranges.offsets])
    lenient.reader.stop()


def test_a_topic_that_was_deleted_ends_the_query_unless_told_otherwise(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = Topic(broker, spark, tmp_path, 1)
    topic.send(30)
    query = Query(topic, kafka_default_api_timeout_ms="2000")
    query.lease()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    admin.delete_topics([topic.name])[topic.name].result(30)
    parts = query.reader.partitions(query.at, query.end)
    with pytest.raises(RuntimeError, match=r"the topic was deleted.*failOnDataLoss=false goes on"):
        list(query.reader.read(parts[0]))
    query.reader.stop()
    lenient = ShareGroupReader(topic.options(failOnDataLoss="false", kafka_default_api_timeout_ms="2000"))
    assert list(lenient.read(parts[0])) == []


def test_transactions_leave_no_holes_behind(topic: Topic) -> None:
    configure_group(topic.broker.bootstrap, topic.group, share_isolation_level="read_committed")
    settings = {"bootstrap.servers": topic.broker.bootstrap, "transactional.id": topic.name, **QUIET}
    producer = Producer(settings)
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(30):
            producer.produce(topic.name, f"{end.__name__} {number}", partition=number % 3)
        end(30)
    query, rows = Query(topic), Rows()
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not settled(topic) or not rows:
        assert time.monotonic() < until, f"{len(rows)} rows"
        query.at = query.end
        query.end = query.reader.latestOffset(query.at, query.reader.getDefaultReadLimit())
        rows += query.rows() if query.end != query.at else []
    query.reader.stop()
    assert values(rows) == Counter({b"commit_transaction %d" % number: 2 for number in range(30)})


def test_two_topics_in_one_query(topic: Topic) -> None:
    other = f"{topic.name}-other"
    create_topic(topic.broker.bootstrap, other, 1)
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap, **QUIET})
    for number in range(20):
        producer.produce((topic.name, other)[number % 2], b"%d" % number)
    assert producer.flush(30) == 0
    query, rows = Query(topic, subscribe=f"{topic.name}, {other}"), Rows()
    while len(rows) < 20:
        query.lease()
        rows += query.rows()
    query.commit()
    assert {row["topic"]: int(row["value"]) % 2 for row in rows} == {topic.name: 0, other: 1}
    assert set(values(rows).values()) == {1}
    ends = query.reader.reportLatestOffset()
    assert ends is not None
    assert ends["end"][other] == {"0": 10}
    assert sum(ends["end"][topic.name].values()) == 10
    query.reader.stop()
