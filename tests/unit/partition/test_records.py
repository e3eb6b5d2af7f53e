from __future__ import annotations

from struct import pack

import pytest

from sharecore.partition.records import aborted_ranges, holding, subtracted

PLAIN, TRANSACTIONAL, MARKER = 0, 0x10, 0x30


def batch(first: int, *, attributes: int = PLAIN, producer_id: int = -1, size: int = 61) -> bytes:
    """The head of a record batch, and nothing behind it."""
    head = pack(">qiibIhiqqqhii", first, size - 12, 0, 2, 0, attributes, 0, 0, 0, producer_id, 0, 0, 0)
    return head + bytes(size - len(head))


BATCHES = [(0, 9), (10, 19), (20, 29), (40, 49)]
RECORDS = [batch(first, size=70 + first) for first, _ in BATCHES]


@pytest.mark.parametrize(
    ("acquired", "wanted"),
    [
        ([(0, 49, 1)], [0, 1, 2, 3]),
        ([(9, 40, 1)], [0, 1, 2, 3]),
        ([(0, 9, 1)], [0]),
        ([(12, 15, 1)], [1]),
        ([(10, 29, 1)], [1, 2]),
        ([(3, 3, 1), (22, 23, 2)], [0, 2]),
        ([(3, 3, 1), (5, 5, 1), (49, 49, 2)], [0, 3]),
        ([(20, 24, 1), (25, 49, 1)], [2, 3]),
        ([(0, 24, 1), (25, 49, 1)], [0, 1, 2, 3]),
        ([(30, 45, 1)], [3]),
    ],
)
def test_only_the_record_batches_with_acquired_records_are_returned(
    acquired: list[tuple[int, int, int]], wanted: list[int]
) -> None:
    assert holding(b"".join(RECORDS), BATCHES, acquired) == b"".join(RECORDS[number] for number in wanted)


def test_batches_of_aborted_transactions_are_found() -> None:
    heads = [
        (PLAIN, 7),
        (TRANSACTIONAL, 7),
        (TRANSACTIONAL, 8),
        (MARKER, 7),
        (TRANSACTIONAL, 7),
        (MARKER, 8),
        (TRANSACTIONAL, 8),
    ]
    records = b"".join(
        batch(n, attributes=kind, producer_id=producer) for n, (kind, producer) in enumerate(heads)
    )
    batches = [(n, n) for n in range(len(heads))]
    assert aborted_ranges(records, batches, [(7, 1)]) == [(1, 1)]
    assert aborted_ranges(records, batches, [(7, 4)]) == [(4, 4)]
    assert aborted_ranges(records, batches, [(8, 2), (7, 1)]) == [(1, 1), (2, 2)]
    assert aborted_ranges(records, batches, []) == []


@pytest.mark.parametrize(
    ("ranges", "left"),
    [
        ([], [(0, 9, 1), (12, 12, 2)]),
        ([(0, 3)], [(4, 9, 1), (12, 12, 2)]),
        ([(2, 3), (5, 12)], [(0, 1, 1), (4, 4, 1)]),
        ([(9, 11)], [(0, 8, 1), (12, 12, 2)]),
        ([(0, 12)], []),
        ([(20, 29)], [(0, 9, 1), (12, 12, 2)]),
    ],
)
def test_offsets_of_aborted_records_are_taken_out_of_what_was_acquired(
    ranges: list[tuple[int, int]], left: list[tuple[int, int, int]]
) -> None:
    assert subtracted([(0, 9, 1), (12, 12, 2)], ranges) == left
