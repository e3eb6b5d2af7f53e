"""Share state as the jobs read it: `format("sharestate")` of a cluster or of files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

KEYS = ("group", "topicId", "topicPartition")
"""What a share partition is known by."""


def read_state(
    spark: SparkSession,
    connection: Mapping[str, str],
    view: str,
    *,
    path: str | None = None,
    group: str | None = None,
    topics: Collection[str] = (),
    mode: str = "FAILFAST",
) -> DataFrame:
    """Rows of share state.

    Args:
        connection: a client's settings; not used with a path.
        view: `live` or `history`.
        path: a data directory or a directory of a state topic's partitions, instead of a cluster.
        group, topics: only these.
        mode: PERMISSIVE keeps a row for what cannot be read, FAILFAST fails.
    """
    options = {"view": view, "mode": mode} | ({"group.id": group} if group is not None else {})
    if path is not None:
        options["path"] = path
    else:
        options |= {f"kafka.{name}": value for name, value in connection.items()}
    frame = spark.read.format("sharestate").options(**options).load()
    return frame.where(F.col("topic").isin(*topics)) if topics else frame
