"""Poison records: records near their delivery limit."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sharecore.jobs.changes import AVAILABLE
from sharecore.jobs.records import read_records
from sharecore.jobs.state import read_state


def poison_ranges(
    spark: SparkSession,
    connection: Mapping[str, str],
    group: str,
    threshold: int,
    *,
    topics: Collection[str] = (),
) -> DataFrame:
    """Ranges of records that wait to be delivered again and were delivered `threshold` times or more.

    A row a share partition: topic, topicId, partition, ranges, offsets.
    """
    live = read_state(spark, connection, "live", group=group, topics=topics)
    ranges = F.filter(
        "stateBatches",
        lambda batch: (batch["deliveryState"] == AVAILABLE) & (batch["deliveryCount"] >= threshold),
    )
    named = F.transform(
        ranges,
        lambda batch: F.struct(
            batch["firstOffset"].alias("first"),
            batch["lastOffset"].alias("last"),
            batch["deliveryCount"].cast("int").alias("count"),
        ),
    )
    size = F.aggregate(
        "ranges", F.lit(0).cast("bigint"), lambda sum, each: sum + each["last"] - each["first"] + 1
    )
    return (
        live.select("topic", "topicId", F.col("topicPartition").alias("partition"), named.alias("ranges"))
        .where("topic is not null and size(ranges) > 0")
        .withColumn("offsets", size)
    )


def poison_records(ranges: DataFrame, connection: Mapping[str, str], group: str, limit: int) -> DataFrame:
    """Return the records themselves, with the group and its delivery limit."""
    return read_records(ranges, connection).select(
        F.lit(group).alias("group"),
        "topic",
        "partition",
        "offset",
        "deliveryCount",
        F.lit(limit).alias("deliveryCountLimit"),
        "timestamp",
        "timestampType",
        "key",
        "value",
        "headers",
    )
