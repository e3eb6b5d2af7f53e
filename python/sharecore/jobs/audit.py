"""The audit of share state: every share partition's history against the invariants, in executors."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sharecore.jobs.changes import changes
from sharecore.jobs.invariants import audit
from sharecore.jobs.schema import arrow_schema
from sharecore.jobs.state import KEYS

FINDINGS = (
    "group string, topic string, topicId string, topicPartition int, severity string, rule string, "
    "partition int, offset bigint, explanation string"
)
_ARROW = arrow_schema(FINDINGS)


def findings(history: DataFrame) -> DataFrame:
    """Return a row for everything that must not be.

    Args:
        history: rows of `format("sharestate")`, of whole share partitions.
    """
    return history.groupBy(*KEYS).applyInArrow(_audit, FINDINGS)


def counted(history: DataFrame) -> DataFrame:
    """Return a row a share partition: how many records of each kind there are."""
    return (
        history.where("group is not null")
        .groupBy(*KEYS)
        .agg(
            F.first("topic", ignorenulls=True).alias("topic"),
            *(
                F.count_if(F.col("type") == kind).alias(f"{kind}s")
                for kind in ("snapshot", "update", "tombstone")
            ),
            F.min("timestamp").alias("first"),
            F.max("timestamp").alias("last"),
        )
    )


def _audit(group: pa.Table) -> pa.Table:
    rows: list[Mapping[str, object]] = group.to_pylist()
    keys = {name: rows[0][name] for name in KEYS}
    keys["topic"] = next((row["topic"] for row in rows if row["topic"] is not None), None)
    found = [{**keys, **finding._asdict()} for finding in audit(changes(rows))]
    return pa.Table.from_pylist(found, schema=_ARROW)
