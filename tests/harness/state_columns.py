"""Rows of share state out of the decoder's buffers, without pyarrow."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

Buffer = tuple[int, bytes | None]


class _Reader:
    def __init__(self, rows: int, buffers: Sequence[Buffer]) -> None:
        self.rows = rows
        self._buffers: Iterator[Buffer] = iter(buffers)

    def validity(self) -> list[bool]:
        nulls, bits = next(self._buffers)
        if bits is None:
            assert nulls == 0
            return [True] * self.rows
        valid = [bool(bits[row // 8] >> row % 8 & 1) for row in range(self.rows)]
        assert valid.count(False) == nulls > 0
        assert len(bits) == -(-self.rows // 8)
        return valid

    def numbers(self, code: str) -> list[int]:
        _, data = next(self._buffers)
        assert data is not None
        return [number for (number,) in struct.iter_unpack(f"={code}", data)]

    def texts(self) -> list[str | None]:
        valid, ends = self.validity(), self.numbers("i")
        _, data = next(self._buffers)
        assert data is not None
        assert len(ends) == self.rows + 1
        assert ends[-1] == len(data)
        assert all(ends[row] == ends[row + 1] for row in range(self.rows) if not valid[row])
        return [data[ends[row] : ends[row + 1]].decode() if valid[row] else None for row in range(self.rows)]

    def batches(self) -> list[list[tuple[int, ...]]]:
        ends = self.numbers("i")
        columns = [self.numbers(code) for code in "qqbh"]
        entries = list(zip(*columns, strict=True))
        assert ends[-1] == len(entries)
        return [entries[ends[row] : ends[row + 1]] for row in range(self.rows)]


def rows_of(decoded: tuple[int, Sequence[Buffer]]) -> list[dict[str, Any]]:
    """Each row by the names of the columns in docs/spark.md; times in milliseconds."""
    reader = _Reader(*decoded)
    columns: dict[str, list[Any]] = {"offset": reader.numbers("q")}
    timed = reader.validity()
    columns["timestamp"] = _masked(reader.numbers("q"), timed, 1000)
    for name in ("type", "group", "topicId"):
        columns[name] = reader.texts()
    columns["topicPartition"] = _masked(
        reader.numbers("i"), [group is not None for group in columns["group"]]
    )
    stated, whole = reader.validity(), reader.validity()
    for name, code, valid in (
        ("snapshotEpoch", "i", stated),
        ("stateEpoch", "i", whole),
        ("leaderEpoch", "i", stated),
        ("startOffset", "q", stated),
        ("deliveryCompleteCount", "i", stated),
    ):
        columns[name] = _masked(reader.numbers(code), valid)
    for name in ("createTime", "writeTime"):
        columns[name] = _masked(reader.numbers("q"), whole, 1000)
    columns["stateBatches"] = _masked(reader.batches(), stated)
    columns["error"] = reader.texts()
    assert {len(column) for column in columns.values()} == {reader.rows}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _masked(values: Sequence[Any], valid: Sequence[bool], divisor: int = 1) -> list[Any]:
    return [
        (value if divisor == 1 else value // divisor) if is_valid else None
        for value, is_valid in zip(values, valid, strict=True)
    ]
