"""What comes of the rows when something dies: the table of docs/spark.md, a test a line."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import configure_group
from tests.spark.conftest import KIND, Topic
from tests.spark.sinks import Place, Sinks
from tests.spark.submitted import Job

from sharecore.admin import BlockingAdmin
from sharecore.client import ShareConsumer

pytestmark = pytest.mark.timeout(400)
SENT = 1500
BATCH = 500
Hook = Callable[[int], None]


def nothing(_number: int) -> None:
    """A hook that does not disturb."""


def run(
    topic: Topic,
    sinks: Sinks,
    hook: Hook = nothing,
    change: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    **options: str,
) -> None:
    """Read what there is; `hook` is called between the write of a batch and its commit."""

    def take(batch: DataFrame, number: int) -> None:
        sinks.write(batch, number)
        hook(number)

    reader = change(topic.read(maxRecordsPerTrigger=str(BATCH), **options))
    writer = reader.writeStream.foreachBatch(take).option("checkpointLocation", topic.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def settled(topic: Topic) -> bool:
    with BlockingAdmin(bootstrap_servers=topic.broker.bootstrap) as admin:
        return all(each.lag == 0 for each in admin.offsets(topic.group))


def test_the_jvm_killed_between_the_write_and_the_commit(topic: Topic, tmp_path: Path) -> None:
    topic.send(SENT)
    job = Job("local[2]", topic, tmp_path, "--kill-at", "1")
    assert job.wait() == -signal.SIGKILL, job.read_log()[-4000:]
    sinks = Sinks(job.home)
    killed = sum(sinks.seen().values()) - BATCH
    Job("local[2]", topic, tmp_path).succeed()
    # a batch that was written but not committed is run again with the same number and rows
    assert sinks.verdict(SENT, topic.partitions) == (0, 0, killed)
    assert settled(topic)


def test_an_executors_worker_killed(topic: Topic, tmp_path: Path) -> None:
    topic.send(SENT)
    sinks, once = Sinks(tmp_path), tmp_path / "once"

    def die(offset: int) -> int:
        if offset == 100 and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return offset

    run(topic, sinks, change=lambda rows: rows.withColumn("offset", F.udf(die, "bigint")("offset")))
    assert once.exists()
    assert sinks.verdict(SENT, topic.partitions) == (0, 0, 0)
    assert settled(topic)


def test_a_task_retried(topic: Topic, tmp_path: Path) -> None:
    topic.send(SENT)
    sinks, once = Sinks(tmp_path), tmp_path / "once"

    def fail(offset: int) -> int:
        if offset == 100 and not once.exists():
            once.touch()
            raise RuntimeError("this attempt fails in its middle")
        return offset

    run(topic, sinks, change=lambda rows: rows.withColumn("offset", F.udf(fail, "bigint")("offset")))
    assert once.exists()
    assert sinks.verdict(SENT, topic.partitions) == (0, 0, 0)


@pytest.mark.parametrize("when", ["while a batch runs", "between batches"])
def test_a_query_stopped(topic: Topic, tmp_path: Path, when: str) -> None:
    topic.send(SENT)
    sinks, written, going = Sinks(tmp_path), threading.Event(), threading.Event()

    def take(batch: DataFrame, number: int) -> None:
        sinks.write(batch, number)
        written.set()
        if when == "while a batch runs":
            going.wait(300)

    reader = topic.read(maxRecordsPerTrigger=str(BATCH))
    writer = reader.writeStream.foreachBatch(take).option("checkpointLocation", topic.checkpoint)
    query = writer.trigger(processingTime="30 seconds").start()
    assert written.wait(120)
    if when == "between batches":
        until = time.monotonic() + 60
        while not query.recentProgress and time.monotonic() < until:
            time.sleep(0.1)
    # it waits for the batch, and usually prevents its commit
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    while query.isActive:
        time.sleep(0.1)
    time.sleep(1)
    going.set()
    stopping.join(120)
    assert not stopping.is_alive()
    again = sinks.rows_without(Path(topic.checkpoint) / "commits")
    run(topic, sinks)
    assert sinks.verdict(SENT, topic.partitions) == (0, 0, again)
    assert settled(topic)


@pytest.mark.parametrize("renew", ["true", "false"])
def test_a_lock_shorter_than_the_batch(topic: Topic, tmp_path: Path, renew: str) -> None:
    topic.send(SENT)
    configure_group(topic.broker.bootstrap, topic.group, share_record_lock_duration_ms=1500)
    sinks = Sinks(tmp_path)

    def linger(number: int) -> None:
        if number == 0:
            time.sleep(6)

    run(topic, sinks, linger, lock_renew=renew)
    # without renewal the records are redelivered, and acknowledged instead of processed
    assert sinks.verdict(SENT, topic.partitions) == (0, 0, 0)
    assert settled(topic)


def test_a_second_member_in_the_group(topic: Topic, tmp_path: Path) -> None:
    topic.send(SENT)
    sinks, theirs = Sinks(tmp_path), Counter[Place]()
    stop = threading.Event()

    async def consume() -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": topic.broker.bootstrap,
            "group_id": topic.group,
            "max_poll_records": 20,
        }
        async with ShareConsumer(**settings) as consumer:
            consumer.subscribe([topic.name])
            while not stop.is_set():
                batch = await consumer.poll(timeout=0.2)
                theirs.update((record.partition, record.offset) for record in batch)
                await asyncio.sleep(0.05)

    configure_group(topic.broker.bootstrap, topic.group, share_auto_offset_reset="earliest")
    other = threading.Thread(target=lambda: asyncio.run(consume()))
    other.start()
    try:
        run(topic, sinks)
    finally:
        stop.set()
        other.join(60)
    # records that the other member held when the query ended are its own to process
    run(topic, sinks)
    assert sinks.verdict(SENT, topic.partitions, theirs) == (0, 0, 0)


def test_the_broker_killed_and_started_while_a_batch_runs(spark: SparkSession, tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker", KIND, QUICK_GROUPS)
    broker.start()
    try:
        topic = Topic(broker, spark, tmp_path, 3)
        topic.send(SENT)
        sinks = Sinks(tmp_path / "sinks")

        def restart(number: int) -> None:
            if number == 1:
                broker.kill()
                broker.start()

        run(topic, sinks, restart)
        # the locks ended with the broker: the records are redelivered, and acknowledged instead of processed
        assert sinks.verdict(SENT, 3) == (0, 0, 0)
        assert settled(topic)
    finally:
        broker.kill()
