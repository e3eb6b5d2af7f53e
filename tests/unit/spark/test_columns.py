from __future__ import annotations

import struct

import pytest
from tests.harness.batches import batch

from sharecore._core import damaged_batches, decode_columns


def numbered(base: int, raw: bytes) -> bytes:
    """Assign the batch an offset, like a broker."""
    return base.to_bytes(8, "big") + raw[8:]


def numbers(buffer: bytes | None, size: int) -> list[int]:
    assert buffer is not None
    return [each for (each,) in struct.iter_unpack({4: "=i", 8: "=q"}[size], buffer)]


def test_records_become_columns_and_carry_the_number_of_their_range() -> None:
    data = numbered(10, batch([b"a", b"", b"ccc"])) + numbered(13, batch([b"d", b"e"]))
    rows, buffers, end, faults = decode_columns(data, [(11, 12, 1), (14, 20, 4)])
    assert (rows, end, faults) == (3, 15, [])
    (key_nulls, key_bits), _, _, (value_nulls, value_bits), (_, starts), (_, values), *rest = buffers
    assert (key_nulls, key_bits) == (3, b"\0")
    assert (value_nulls, value_bits) == (0, None)
    assert numbers(starts, 4) == [0, 0, 3, 4]
    assert values == b"ccce"
    offsets, timestamps, kinds, counts = (buffer for _, buffer in rest[:4])
    assert numbers(offsets, 8) == [11, 12, 14]
    assert numbers(timestamps, 8) == [1_000_001_000, 1_000_002_000, 1_000_001_000]
    assert numbers(kinds, 4) == [0, 0, 0]
    assert numbers(counts, 4) == [1, 1, 4]
    assert len(decode_columns(data, [], headers=False)[1]) == 10


def test_a_damaged_batch_is_told_of_and_the_others_are_read() -> None:
    broken = bytearray(numbered(3, batch([b"x", b"y"])))
    broken[-1] ^= 1
    data = numbered(0, batch([b"a", b"b", b"c"])) + bytes(broken) + numbered(5, batch([b"d"]))
    rows, buffers, end, faults = decode_columns(data, [(0, 9, 1)])
    assert (rows, end) == (4, 6)
    assert numbers(buffers[6][1], 8) == [0, 1, 2, 5]
    assert [(first, last) for first, last, _ in faults] == [(3, 4)]
    assert damaged_batches(data, [(4, 4)]) == faults
    assert damaged_batches(data, [(0, 2), (5, 9)]) == []


def test_ranges_have_to_ascend() -> None:
    with pytest.raises(ValueError, match="ascend"):
        decode_columns(b"", [(5, 6, 1), (6, 7, 1)])
