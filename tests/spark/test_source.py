"""The streaming source on a broker: what arrives, what is acknowledged, what Spark is told."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from tests.spark.conftest import Topic

from sharecore.admin import BlockingAdmin
from sharecore.spark import settle

pytestmark = pytest.mark.timeout(300)


def run(topic: Topic, rows: list[Row], **options: str) -> list[int]:
    """Read what there is into `rows`; return how many rows each batch had."""
    sizes = []

    def take(batch: DataFrame, _number: int) -> None:
        found = batch.collect()
        sizes.append(len(found))
        rows.extend(found)

    writer = topic.read(**options).writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", topic.checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return sizes


def lag(topic: Topic) -> int:
    """Records that the group has not settled."""
    with BlockingAdmin(bootstrap_servers=topic.broker.bootstrap) as admin:
        return sum(each.lag or 0 for each in admin.offsets(topic.group))


def test_every_record_arrives_once_with_the_columns_of_sparks_kafka_source(topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap})
    producer.produce(topic.name, None, key=b"k", partition=0, headers=[("h", b"1"), ("h", None)], timestamp=7)
    producer.flush()
    sent = topic.send(3000)
    rows: list[Row] = []
    run(topic, rows)
    first = next(row for row in rows if row.key is not None)
    assert first.asDict() | {"timestamp": None} == {
        "key": b"k",
        "value": None,
        "topic": topic.name,
        "partition": 0,
        "offset": 0,
        "timestamp": None,
        "timestampType": 0,
        "deliveryCount": 1,
        "headers": [Row(key="h", value=b"1"), Row(key="h", value=None)],
    }
    assert first.timestamp.timestamp() == 0.007
    assert Counter(bytes(row.value) for row in rows if row.value is not None) == Counter(sent)
    assert len({(row.partition, row.offset) for row in rows}) == len(rows) == 3001
    assert lag(topic) == 0
    more = topic.send(30)
    rows.clear()
    run(topic, rows)
    assert Counter(bytes(row.value) for row in rows) == Counter(more)
    assert lag(topic) == 0


def test_batches_keep_to_the_limit_and_tasks_outnumber_partitions(topic: Topic) -> None:
    topic.send(1000)
    rows: list[Row] = []
    tasks: list[int] = []

    def take(batch: DataFrame, _number: int) -> None:
        tasks.append(batch.rdd.getNumPartitions())
        rows.extend(batch.collect())

    reader = topic.read(maxRecordsPerTrigger="400", minPartitions="8", includeHeaders="false")
    assert "headers" not in reader.columns
    writer = reader.writeStream.foreachBatch(take).option("checkpointLocation", topic.checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    assert max(sizes) <= 800  # collect and the count of partitions read the batch twice
    assert len({(row.partition, row.offset) for row in rows}) == len(rows) == 1000
    assert max(tasks) >= 8
    assert topic.name in query.recentProgress[-1]["sources"][0]["latestOffset"]


def test_rows_are_released_and_rejected_by_name(topic: Topic) -> None:
    topic.send(90)
    seen: Counter[bytes] = Counter()
    value = F.col("value").cast("string")

    def take(batch: DataFrame, _number: int) -> None:
        seen.update(bytes(row.value) for row in batch.collect())
        outcome = F.when(value == "00000007", "reject").when(
            value.endswith("5") & (F.col("deliveryCount") < 3), "release"
        )
        settle(batch, outcome, topic.checkpoint)

    writer = topic.read().writeStream.foreachBatch(take).option("checkpointLocation", topic.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert {value: count for value, count in seen.items() if count > 1} == {
        b"%08d" % number: 3 for number in range(5, 90, 10)
    }
    assert len(seen) == 90
    assert lag(topic) == 0


def test_a_poison_record_comes_until_the_delivery_limit(topic: Topic) -> None:
    topic.send(30)
    seen: Counter[bytes] = Counter()

    def take(batch: DataFrame, _number: int) -> None:
        seen.update(bytes(row.value) for row in batch.collect())
        settle(batch, F.when(F.col("value").cast("string") == "00000011", "release"), topic.checkpoint)

    writer = topic.read().writeStream.foreachBatch(take).option("checkpointLocation", topic.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    # group.share.delivery.count.limit
    assert seen.pop(b"00000011") == 5
    assert set(seen.values()) == {1}
    assert len(seen) == 29
    assert lag(topic) == 0


def test_a_query_that_stays_takes_what_comes(topic: Topic) -> None:
    seen: Counter[bytes] = Counter()
    came = threading.Condition()

    def take(batch: DataFrame, _number: int) -> None:
        found = Counter(bytes(row.value) for row in batch.collect())
        with came:
            seen.update(found)
            came.notify()

    writer = topic.read().writeStream.foreachBatch(take).option("checkpointLocation", topic.checkpoint)
    query = writer.trigger(processingTime="200 milliseconds").start()
    sent: list[bytes] = []

    def all_came() -> bool:
        return len(seen) == len(sent)

    for _ in range(3):
        sent += topic.send(100)
        with came:
            assert came.wait_for(all_came, 120), query.exception()
    query.stop()
    assert seen == Counter(sent)
