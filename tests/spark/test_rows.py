from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from tests.harness.batches import batch

from sharecore.spark.rows import COLUMNS, HEADERS, decode


def numbered(base: int, raw: bytes) -> bytes:
    """Return the batch where a broker put it."""
    return base.to_bytes(8, "big") + raw[8:]


@pytest.mark.parametrize("headers", [True, False])
def test_the_columns_are_those_that_spark_is_told_of(spark: SparkSession, headers: bool) -> None:
    rows = decode(batch([b"a"]), [(0, 0, 1)], "t", 3, headers=headers)
    assert rows.batch is not None
    told = spark.createDataFrame([], COLUMNS + (HEADERS if headers else "")).schema
    assert rows.batch.schema.equals(to_arrow_schema(told, timezone="UTC"))
    rows.batch.validate(full=True)


def test_rows_carry_the_delivery_count_of_their_range() -> None:
    data = numbered(10, batch([b"a", b"", b"ccc"])) + numbered(13, batch([b"d", b"e"]))
    rows = decode(data, [(11, 12, 1), (14, 20, 4)], "t", 3, headers=True)
    assert rows.next == 15
    assert rows.faults == []
    assert isinstance(rows.batch, pa.RecordBatch)
    found = rows.batch.to_pydict()
    assert found["value"] == [b"", b"ccc", b"e"]
    assert found["key"] == [None] * 3
    assert found["offset"] == [11, 12, 14]
    assert found["deliveryCount"] == [1, 1, 4]
    assert found["topic"] == ["t"] * 3
    assert found["partition"] == [3] * 3
    assert found["headers"] == [None] * 3
    assert [each.timestamp() for each in found["timestamp"]] == [1000.001, 1000.002, 1000.001]


def test_a_damaged_batch_is_told_of_and_the_others_are_read() -> None:
    broken = bytearray(numbered(3, batch([b"x", b"y"])))
    broken[-1] ^= 1
    data = numbered(0, batch([b"a", b"b", b"c"])) + bytes(broken) + numbered(5, batch([b"d"]))
    rows = decode(data, [(0, 9, 1)], "t", 0, headers=True)
    assert rows.batch is not None
    assert rows.batch.column("offset").to_pylist() == [0, 1, 2, 5]
    assert [(first, last) for first, last, _ in rows.faults] == [(3, 4)]


def test_no_row_is_no_batch() -> None:
    rows = decode(batch([b"a"]), [(5, 6, 1)], "t", 0, headers=True)
    assert (rows.batch, rows.next) == (None, 1)
    with pytest.raises(ValueError, match="ascend"):
        decode(b"", [(5, 6, 1), (6, 7, 1)], "t", 0, headers=True)
