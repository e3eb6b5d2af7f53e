"""Records by their offsets, fetched in executors from the partitions' leaders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame

from sharecore.sharestate.keys import topic_id_of
from sharecore.spark.fetch import LeasedRanges, read_ranges
from sharecore.spark.rows import COLUMNS, HEADERS

_RECORD_BYTES = 1_000.0


def read_records(ranges: DataFrame, connection: Mapping[str, str]) -> DataFrame:
    """Return the records in ranges, with the columns of `format("sharegroup")`; deleted ones are skipped.

    Args:
        ranges: topic, topicId, partition and ranges, an array of first, last and count. They ascend and do
            not overlap; the count becomes the delivery count.
    """
    settings = dict(connection)

    def read(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for row in part.to_pylist():
                yield from records_of(row, settings)

    return ranges.select("topic", "topicId", "partition", "ranges").mapInArrow(read, COLUMNS + HEADERS)


def records_of(row: Mapping[str, Any], connection: dict[str, str]) -> Iterator[pa.RecordBatch]:
    """Return the records of one row of ranges; raise KafkaError if its leader refuses or does not answer."""
    part = LeasedRanges(
        row["topic"],
        topic_id_of(row["topicId"]),
        row["partition"],
        tuple((each["first"], each["last"], each["count"]) for each in row["ranges"]),
        _RECORD_BYTES,
    )
    return read_ranges(part, connection, headers=True, fail_on_data_loss=False)


def first_record(
    connection: dict[str, str], topic: str, topic_id: UUID, partition: int, first: int, end: int
) -> tuple[int, datetime] | None:
    """Return offset and timestamp of the first record from an offset on; None without one before `end`."""
    # this small a size makes the fetch request its minimum, a few records
    part = LeasedRanges(topic, topic_id, partition, ((first, end - 1, 0),), 0.0)
    for batch in read_ranges(part, connection, headers=False, fail_on_data_loss=False):
        if batch.num_rows:
            return batch.column("offset")[0].as_py(), batch.column("timestamp")[0].as_py()
    return None
