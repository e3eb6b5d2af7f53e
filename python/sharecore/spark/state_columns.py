"""Share state as Arrow record batches, out of the decoder's buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = (
    "partition int, offset bigint, timestamp timestamp, type string, group string, topicId string, "
    "topic string, topicPartition int, snapshotEpoch int, stateEpoch int, leaderEpoch int, "
    "startOffset bigint, deliveryCompleteCount int, createTime timestamp, writeTime timestamp, "
    "stateBatches array<struct<firstOffset: bigint, lastOffset: bigint, deliveryState: tinyint, "
    "deliveryCount: smallint>>, error string"
)
"""Names that Spark gets."""

_TIME = pa.timestamp("us", tz="UTC")
_BATCH = pa.struct(
    [
        pa.field("firstOffset", pa.int64()),
        pa.field("lastOffset", pa.int64()),
        pa.field("deliveryState", pa.int8()),
        pa.field("deliveryCount", pa.int16()),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", _TIME),
        pa.field("type", pa.string()),
        pa.field("group", pa.string()),
        pa.field("topicId", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("topicPartition", pa.int32()),
        pa.field("snapshotEpoch", pa.int32()),
        pa.field("stateEpoch", pa.int32()),
        pa.field("leaderEpoch", pa.int32()),
        pa.field("startOffset", pa.int64()),
        pa.field("deliveryCompleteCount", pa.int32()),
        pa.field("createTime", _TIME),
        pa.field("writeTime", _TIME),
        pa.field("stateBatches", pa.list_(pa.field("element", _BATCH))),
        pa.field("error", pa.string()),
    ]
)

Buffer = tuple[int, bytes | None]
Names = Mapping[str, str | None]
"""Names of topics by their ids as text; None where nobody knows it."""


class _ColumnReader:
    """Takes the decoder's buffers one after the other, and makes arrays of them."""

    def __init__(self, rows: int, buffers: Sequence[Buffer]) -> None:
        self._rows = rows
        self._buffers: Iterator[Buffer] = iter(buffers)

    def validity(self) -> Buffer:
        return next(self._buffers)

    def data(self) -> pa.Buffer:
        return pa.py_buffer(next(self._buffers)[1])

    def text(self) -> pa.Array:
        nulls, bits = self.validity()
        parts = [_optional(bits), self.data(), self.data()]
        return pa.Array.from_buffers(pa.string(), self._rows, parts, null_count=nulls)

    def numbers(self, kind: pa.DataType, valid: Buffer = (0, None)) -> pa.Array:
        return pa.Array.from_buffers(
            kind, self._rows, [_optional(valid[1]), self.data()], null_count=valid[0]
        )

    def batches(self, valid: Buffer) -> pa.Array:
        starts, *columns = (self.data() for _ in range(1 + len(_BATCH)))
        count = len(columns[2])
        fields = [
            pa.Array.from_buffers(field.type, count, [None, column])
            for field, column in zip(_BATCH, columns, strict=True)
        ]
        entries = pa.StructArray.from_arrays(fields, fields=list(_BATCH))
        return pa.Array.from_buffers(
            SCHEMA.field("stateBatches").type,
            self._rows,
            [_optional(valid[1]), starts],
            null_count=valid[0],
            children=[entries],
        )


def _optional(bits: bytes | None) -> pa.Buffer | None:
    return None if bits is None else pa.py_buffer(bits)


def state_rows(rows: int, buffers: Sequence[Buffer], partition: int) -> pa.RecordBatch:
    """Return decoded or folded states with their partition of the state topic, without names."""
    take = _ColumnReader(rows, buffers)
    offset = take.numbers(pa.int64())
    timestamp = take.numbers(_TIME, take.validity())
    kind, group, topic_id = take.text(), take.text(), take.text()
    # a row has a partition if it has a group
    topic_partition = take.numbers(pa.int32())
    if group.null_count:
        topic_partition = pc.if_else(group.is_valid(), topic_partition, None)
    stated, whole = take.validity(), take.validity()
    columns = [
        pa.repeat(pa.scalar(partition, pa.int32()), rows),
        offset,
        timestamp,
        kind,
        group,
        topic_id,
        pa.nulls(rows, pa.string()),
        topic_partition,
        take.numbers(pa.int32(), stated),
        take.numbers(pa.int32(), whole),
        take.numbers(pa.int32(), stated),
        take.numbers(pa.int64(), stated),
        take.numbers(pa.int32(), stated),
        take.numbers(_TIME, whole),
        take.numbers(_TIME, whole),
        take.batches(stated),
        take.text(),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def topic_ids(batch: pa.RecordBatch) -> list[str]:
    """Return the topics that a batch has rows of, each once."""
    found: list[str] = batch.column("topicId").unique().drop_null().to_pylist()
    return found


def with_names(batch: pa.RecordBatch, names: Names) -> pa.RecordBatch:
    """Return the batch with the known names of its topics."""
    known = {topic_id: name for topic_id, name in names.items() if name is not None}
    places = pc.index_in(batch.column("topicId"), pa.array(known, pa.string()))
    named = pa.array(known.values(), pa.string()).take(places)
    return batch.set_column(SCHEMA.get_field_index("topic"), SCHEMA.field("topic"), named)


def unreadable_row(partition: int, offset: int, reason: str) -> pa.RecordBatch:
    """Return a row that says why something at this offset cannot be read."""
    row = {"partition": partition, "offset": offset, "type": "unreadable", "error": reason}
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)
