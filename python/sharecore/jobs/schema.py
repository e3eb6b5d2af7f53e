"""Columns in Spark's words and in Arrow's, written down once."""

from __future__ import annotations

import pyarrow as pa

_KINDS = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_schema(columns: str, **nested: pa.DataType) -> pa.Schema:
    """Return the Arrow schema of plain columns as Spark's DDL has them, and nested ones behind them."""
    names = [column.split() for column in columns.split(", ")]
    plain = [pa.field(name, _KINDS[kind]) for name, kind in names]
    return pa.schema([*plain, *(pa.field(name, kind) for name, kind in nested.items())])


def structs(columns: str) -> pa.DataType:
    """Return a list of structs of plain columns."""
    return pa.list_(pa.struct(list(arrow_schema(columns))))
