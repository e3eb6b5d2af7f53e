"""Records to redrive: the archived ranges in a group's history, without those of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sharecore.jobs.changes import changes
from sharecore.jobs.redrivable import ALL, portions
from sharecore.jobs.schema import arrow_schema, structs
from sharecore.jobs.state import KEYS

_PLAIN = (
    "topic string, topicId string, partition int, stateEpoch int, rejected bigint, exhausted bigint, "
    "done bigint"
)
_RANGE = "first bigint, last bigint, count int"
SCHEMA = f"{_PLAIN}, ranges array<struct<{_RANGE}>>"
_ARROW = arrow_schema(_PLAIN, ranges=structs(_RANGE))
DONE = "group string, topicId string, topicPartition int, stateEpoch int, offset bigint"


def plan(
    spark: SparkSession,
    history: DataFrame,
    limit: int,
    *,
    outcome: str = ALL,
    done: DataFrame | None = None,
) -> DataFrame:
    """Rows of at most CHUNK offsets of a share partition, and how many of them were rejected.

    Args:
        history: of one group.
        limit: the group's delivery limit: what was archived before it was rejected, or is gone from the log.
        outcome: which of them; one of `redrivable.OUTCOMES`.
        done: what was redriven before, with the columns of DONE.
    """
    before = (
        spark.createDataFrame([], DONE)
        if done is None
        else done.select("group", *KEYS[1:], "stateEpoch", "offset")
    )

    def planned(some: pa.Table, finished: pa.Table) -> pa.Table:
        rows = some.to_pylist()
        found = _chunks(rows, finished.to_pylist(), limit, outcome) if rows else []
        return pa.Table.from_pylist(found, schema=_ARROW)

    return history.groupBy(*KEYS).cogroup(before.groupBy(*KEYS)).applyInArrow(planned, SCHEMA)


def _chunks(
    rows: Sequence[Mapping[str, object]], done: Sequence[Mapping[str, Any]], limit: int, outcome: str
) -> list[dict[str, object]]:
    epoch, found = portions(
        list(changes(rows)), limit, outcome, ((row["stateEpoch"], row["offset"]) for row in done)
    )
    key = {
        "topic": next((row["topic"] for row in rows if row["topic"] is not None), None),
        "topicId": rows[0]["topicId"],
        "partition": rows[0]["topicPartition"],
        "stateEpoch": epoch,
    }
    return [
        {
            **key,
            **portion._asdict(),
            "ranges": [
                {"first": first, "last": last, "count": count} for first, last, count in portion.ranges
            ],
        }
        for portion in found
    ]
