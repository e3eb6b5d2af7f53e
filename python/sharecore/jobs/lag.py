"""Lag and age of share partitions: a row for each, reckoned in executors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sharecore.admin import TopicPartition
from sharecore.jobs.changes import batches
from sharecore.jobs.cluster import Ends, ends
from sharecore.jobs.records import first_record
from sharecore.jobs.schema import arrow_schema
from sharecore.jobs.state import read_state
from sharecore.jobs.windows import window
from sharecore.sharestate.keys import topic_id_of

SCHEMA = (
    "group string, topic string, topicId string, partition int, startOffset bigint, logStartOffset bigint, "
    "logEndOffset bigint, lag bigint, lagBytes bigint, settled bigint, redelivered bigint, "
    "lagWithoutRedelivered bigint, deliveryCountMax int, oldestOffset bigint, oldestTimestamp timestamp, "
    "ageMs bigint, stateEpoch int, leaderEpoch int"
)
_ARROW = arrow_schema(SCHEMA)


def lag(
    spark: SparkSession,
    connection: Mapping[str, str],
    *,
    group: str | None = None,
    topics: Collection[str] = (),
) -> DataFrame:
    """Return a row a share partition; see docs/spark.md for the columns.

    Raises:
        KafkaError: a broker did not answer, or refused.
    """
    live = read_state(spark, connection, "live", group=group, topics=topics).cache()
    partitions = {
        TopicPartition(row.topic, row.topicPartition)
        for row in live.where("topic is not null").select("topic", "topicPartition").distinct().collect()
    }
    known = ends(connection, partitions)
    now_ms = int(datetime.now(timezone.utc).timestamp() * 1000)
    settings = dict(connection)

    def reckon(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            rows = [_row(row, known, settings, now_ms) for row in part.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    # each row requests a record from a leader, so run them in parallel
    spread = live.repartition(max(1, min(len(known), 4 * spark.sparkContext.defaultParallelism)))
    return spread.mapInArrow(reckon, SCHEMA)


def _row(
    row: Mapping[str, Any], known: Mapping[TopicPartition, Ends], connection: dict[str, str], now_ms: int
) -> dict[str, object]:
    log = known.get(TopicPartition(row["topic"], row["topicPartition"])) if row["topic"] else None
    found = window(
        row["startOffset"],
        row["deliveryCompleteCount"],
        batches(row["stateBatches"]),
        None if log is None else log.log_start,
        None if log is None else log.log_end,
    )
    oldest = None
    if found.oldest_offset is not None and log is not None:
        oldest = first_record(
            connection,
            row["topic"],
            topic_id_of(row["topicId"]),
            row["topicPartition"],
            found.oldest_offset,
            log.log_end,
        )
    return {
        "group": row["group"],
        "topic": row["topic"],
        "topicId": row["topicId"],
        "partition": row["topicPartition"],
        "startOffset": None if row["startOffset"] < 0 else row["startOffset"],
        "logStartOffset": None if log is None else log.log_start,
        "logEndOffset": None if log is None else log.log_end,
        "lag": found.lag,
        "lagBytes": _bytes(found.lag, log),
        "settled": found.settled,
        "redelivered": found.redelivered,
        "lagWithoutRedelivered": found.lag_without_redelivered,
        "deliveryCountMax": found.delivery_count_max,
        "oldestOffset": None if oldest is None else oldest[0],
        "oldestTimestamp": None if oldest is None else oldest[1],
        "ageMs": None if oldest is None else max(0, now_ms - int(oldest[1].timestamp() * 1000)),
        "stateEpoch": row["stateEpoch"],
        "leaderEpoch": row["leaderEpoch"],
    }


def _bytes(lag: int | None, log: Ends | None) -> int | None:
    """About, by the mean size of the partition's records."""
    if lag is None or log is None or log.size_bytes is None or log.log_end <= log.log_start:
        return 0 if lag == 0 else None
    return round(log.size_bytes * lag / (log.log_end - log.log_start))
