"""Records as Arrow record batches with the columns of Spark's Kafka source, and the delivery count."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sharecore._core import decode_columns
from sharecore.spark.ranges import Range

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, deliveryCount int"
)
HEADERS = ", headers array<struct<key: string, value: binary>>"

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field("deliveryCount", pa.int32()),
]
_SCHEMA = pa.schema(_FIELDS)
_SCHEMA_HEADERS = pa.schema([*_FIELDS, pa.field("headers", pa.list_(pa.field("element", _HEADER)))])


def headers_type() -> pa.DataType:
    """Return the type of the headers column."""
    return _SCHEMA_HEADERS.field("headers").type


def column_names(*, headers: bool) -> list[str]:
    """Return the names of the columns, in order."""
    names: list[str] = (_SCHEMA_HEADERS if headers else _SCHEMA).names
    return names


class Rows:
    """What was made of record batches.

    `batch` is None where no row is in them; `next` is the offset behind the last whole batch, None where
    there is none; `faults` has (first, last, reason) of batches that cannot be read.
    """

    __slots__ = ("batch", "faults", "next")

    def __init__(self, batch: pa.RecordBatch | None, next_: int | None, faults: list[tuple[int, int, str]]):
        self.batch, self.next, self.faults = batch, next_, faults


def decode(records: bytes, ranges: Sequence[Range], topic: str, partition: int, *, headers: bool) -> Rows:
    """Return the records in `ranges`; the ranges' numbers become delivery counts."""
    rows, buffers, end, faults = decode_columns(records, ranges, headers=headers)
    if not rows:
        return Rows(None, end, faults)
    taken = iter(buffers)

    def array(kind: pa.DataType, count: int = rows, buffers: int = 1) -> pa.Array:
        nulls, bits = next(taken) if buffers != 1 else (0, None)
        parts = [None if bits is None else pa.py_buffer(bits)]
        parts += [pa.py_buffer(next(taken)[1]) for _ in range(max(1, buffers - 1))]
        return pa.Array.from_buffers(kind, count, parts, null_count=nulls)

    key = array(pa.binary(), buffers=3)
    value = array(pa.binary(), buffers=3)
    offset = array(pa.int64())
    timestamp = array(pa.timestamp("us", tz="UTC"))
    kind = array(pa.int32())
    count = array(pa.int32())
    columns = [
        key,
        value,
        pa.repeat(pa.scalar(topic), rows),
        pa.repeat(pa.scalar(partition, pa.int32()), rows),
        offset,
        timestamp,
        kind,
        count,
    ]
    if headers:
        columns.append(_headers(rows, buffers[10:]))
    return Rows(
        pa.RecordBatch.from_arrays(columns, schema=_SCHEMA_HEADERS if headers else _SCHEMA), end, faults
    )


def _headers(rows: int, buffers: Sequence[tuple[int, bytes | None]]) -> pa.Array:
    (nulls, bits), (_, starts), (_, names_at), (_, names), (none, valid), (_, at), (_, contents) = buffers
    entries = len(names_at or b"") // 4 - 1
    keys = pa.Array.from_buffers(pa.string(), entries, [None, pa.py_buffer(names_at), pa.py_buffer(names)])
    validity = None if valid is None else pa.py_buffer(valid)
    values = pa.Array.from_buffers(
        pa.binary(), entries, [validity, pa.py_buffer(at), pa.py_buffer(contents)], null_count=none
    )
    entry = pa.StructArray.from_arrays([keys, values], fields=list(_HEADER))
    mask = None if bits is None else pa.py_buffer(bits)
    return pa.Array.from_buffers(
        _SCHEMA_HEADERS.field("headers").type,
        rows,
        [mask, pa.py_buffer(starts)],
        null_count=nulls,
        children=[entry],
    )
