"""From the bytes of a share fetch to records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.batches import (
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Content,
    batch,
    plain,
)

from sharecore._core import Record, decode_records

Acquired = list[tuple[int, int, int]]


def decode(
    data: bytes, acquired: Acquired
) -> tuple[list[Record], list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int, str]]]:
    return decode_records(data, acquired, "topic", 3, "lease")


def offsets(records: list[Record]) -> list[int]:
    return [record.offset for record in records]


def test_a_record_shows_what_was_written() -> None:
    headers = [("a", b"1"), ("a", None), ("ü", b"")]
    data = batch(7, [Content(2, b"value", b"key", headers, 30)], leader_epoch=5, base_timestamp=100)
    (record,), gaps, cut_off, corrupt = decode(data, [(7, 9, 4)])
    assert (record.topic, record.partition, record.offset) == ("topic", 3, 9)
    assert (record.key, record.value, record.headers) == (b"key", b"value", headers)
    assert (record.serialized_key_size, record.serialized_value_size) == (3, 5)
    assert (record.timestamp, record.timestamp_type) == (130, 0)
    assert (record.delivery_count, record.leader_epoch) == (4, 5)
    assert (record.lease, record.position) == ("lease", 2)
    assert (gaps, cut_off, corrupt) == ([(7, 8)], [], [])


def test_null_key_and_value_are_not_empty_ones() -> None:
    records, *_ = decode(batch(0, [Content(0, None, None), Content(1, b"", b"")]), [(0, 1, 1)])
    assert [(record.key, record.value) for record in records] == [(None, None), (b"", b"")]
    sizes = [(record.serialized_key_size, record.serialized_value_size) for record in records]
    assert sizes == [(-1, -1), (0, 0)]
    assert records[0].replace("key", None).serialized_key_size == -1


def test_append_time_is_the_one_of_the_batch() -> None:
    data = batch(0, [Content(0), Content(1)], attributes=LOG_APPEND_TIME, max_timestamp=777)
    records, *_ = decode(data, [(0, 1, 1)])
    assert [(record.timestamp, record.timestamp_type) for record in records] == [(777, 1)] * 2


def test_only_acquired_records_come_out() -> None:
    data = plain(0, 10) + plain(10, 10) + plain(20, 10)
    records, gaps, cut_off, corrupt = decode(data, [(3, 4, 1), (8, 11, 2), (25, 25, 3)])
    assert offsets(records) == [3, 4, 8, 9, 10, 11, 25]
    assert [record.delivery_count for record in records] == [1, 1, 2, 2, 2, 2, 3]
    assert [record.position for record in records] == list(range(7))
    assert (gaps, cut_off, corrupt) == ([], [], [])


def test_acquired_offsets_without_a_record_are_gaps() -> None:
    compacted = batch(0, [Content(1, b"1"), Content(4, b"4")], last_delta=9)
    marker = batch(10, [Content(0)], attributes=CONTROL | TRANSACTIONAL)
    records, gaps, *rest = decode(compacted + marker + plain(20, 2), [(0, 10, 1), (15, 21, 1)])
    assert offsets(records) == [1, 4, 20, 21]
    assert gaps == [(0, 0), (2, 3), (5, 10), (15, 19)]
    assert rest == [[], []]


def test_nothing_at_all_is_one_gap() -> None:
    assert decode(b"", [(5, 9, 1)]) == ([], [(5, 9)], [], [])


def test_a_batch_that_was_cut_off_is_no_gap() -> None:
    data = plain(0, 10) + plain(10, 10)
    for cut in (1, 60, 61, len(plain(10, 10)) - 1):
        records, gaps, cut_off, corrupt = decode(data[: len(plain(0, 10)) + cut], [(0, 19, 1)])
        assert offsets(records) == list(range(10))
        assert (gaps, cut_off, corrupt) == ([], [(10, 19)], [])


def test_a_damaged_batch_is_told_and_the_others_are_read() -> None:
    damaged = bytearray(plain(10, 10))
    damaged[-1] ^= 1
    records, gaps, cut_off, corrupt = decode(
        plain(0, 10) + damaged + plain(20, 10), [(5, 14, 1), (18, 25, 1)]
    )
    assert offsets(records) == [*range(5, 10), *range(20, 26)]
    assert (gaps, cut_off) == ([], [])
    assert [(first, last) for first, last, _ in corrupt] == [(10, 14), (18, 19)]
    assert "checksum" in corrupt[0][2]


def test_damage_where_nothing_was_acquired_is_nobodys_business() -> None:
    damaged = bytearray(plain(0, 10))
    damaged[-1] ^= 1
    records, *rest = decode(bytes(damaged) + plain(10, 10), [(10, 12, 1)])
    assert offsets(records) == [10, 11, 12]
    assert rest == [[], [], []]


def test_unknown_compression_and_format_are_told() -> None:
    *_, corrupt = decode(batch(0, [Content(0)], attributes=5), [(0, 0, 1)])
    assert corrupt == [(0, 0, "compression type 5 is unknown")]
    old = bytearray(plain(0, 1))
    old[16] = 1
    *_, corrupt = decode(bytes(old), [(0, 0, 1)])
    assert corrupt == [(0, 0, "record format 1 is not supported, only 2 is")]


@pytest.mark.parametrize("acquired", [[(5, 4, 1)], [(0, 5, 1), (5, 6, 1)], [(-1, 3, 1)], [(0, 2**62, 1)]])
def test_impossible_ranges_are_refused(acquired: Acquired) -> None:
    with pytest.raises(ValueError, match="acquired ranges"):
        decode(plain(0, 10), acquired)


def test_a_replaced_record_keeps_the_rest() -> None:
    (record,), *_ = decode(batch(0, [Content(0, b"1", b"k", [("h", b"v")])]), [(0, 0, 2)])
    other = record.replace("key", 1)
    assert (other.key, other.value, other.headers) == ("key", 1, [("h", b"v")])
    assert (other.offset, other.delivery_count, other.lease) == (0, 2, "lease")
    assert (record.key, record.value) == (b"k", b"1")


@pytest.mark.heavy
@given(
    batches=st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 12), min_size=1)), max_size=5),
    cuts=st.lists(st.integers(1, 9), max_size=8),
)
def test_every_acquired_offset_is_a_record_or_a_gap(
    batches: list[tuple[int, set[int]]], cuts: list[int]
) -> None:
    data, written, base = b"", set(), 0
    for skipped, deltas in batches:
        base += skipped
        data += batch(base, [Content(delta) for delta in sorted(deltas)])
        written |= {base + delta for delta in deltas}
        base += max(deltas) + 1
    acquired, at = [], 0
    for index, size in enumerate(cuts):
        if index % 2 == 0:
            acquired.append((at, at + size - 1, 1))
        at += size
    records, gaps, cut_off, corrupt = decode(data, acquired)
    owned = [offset for first, last, _ in acquired for offset in range(first, last + 1)]
    assert offsets(records) == [offset for offset in owned if offset in written]
    assert [offset for first, last in gaps for offset in range(first, last + 1)] == [
        offset for offset in owned if offset not in written
    ]
    assert [owned[record.position] for record in records] == offsets(records)
    assert (cut_off, corrupt) == ([], [])


@given(st.binary(max_size=300))
def test_arbitrary_bytes_after_a_batch_harm_nothing(tail: bytes) -> None:
    records, *_ = decode(plain(0, 3) + tail, [(0, 2, 1)])
    assert offsets(records)[:3] == [0, 1, 2]


@given(data=st.data())
def test_a_record_with_any_byte_changed_is_never_a_crash(data: st.DataObject) -> None:
    whole = bytearray(batch(0, [Content(0, b"value", b"key", [("h", b"v")])]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    decode(bytes(whole), [(0, 10, 1)])
