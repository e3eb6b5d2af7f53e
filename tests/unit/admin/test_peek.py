from __future__ import annotations

import pytest

from sharecore._core import decode_records, encode_records
from sharecore.admin.peek import ALL_STATES, UNSETTLED, Spans

BATCHES = [(0, 4, 2, 1), (7, 9, 0, 3), (10, 12, 4, 5), (20, 20, 2, 1)]


@pytest.mark.parametrize(
    ("states", "wanted"),
    [
        (["new"], [3, 5, 6, 13, 19, 21, 22]),
        (["available"], [7, 8, 9]),
        (["archived"], [10, 11, 12]),
        (["acknowledged"], [3, 4, 20]),
        (UNSETTLED, [3, 5, 6, 7, 8, 9, 13, 19, 21, 22]),
        (ALL_STATES, list(range(23))),
        ([], []),
    ],
)
def test_the_next_offset_whose_state_is_wanted(states: list[str], wanted: list[int]) -> None:
    spans = Spans(3, BATCHES, frozenset(states))
    for offset in range(23):
        state = spans.at(max(offset, 3))[0]
        expected = next((each for each in range(max(offset, 3), 23) if spans.at(each)[0] in states), None)
        found = spans.next_wanted(offset)
        assert found == expected, (offset, state)
        if found == offset:
            assert offset in wanted or "new" in states


def test_what_lies_between_batches_was_never_given_back() -> None:
    spans = Spans(3, BATCHES, ALL_STATES)
    assert [spans.at(offset) for offset in (3, 5, 8, 11, 13, 20, 99)] == [
        ("acknowledged", 1), ("new", 0), ("available", 3), ("archived", 5), ("new", 0), ("acknowledged", 1),
        ("new", 0),
    ]  # fmt: skip


def test_a_batch_that_is_written_is_read() -> None:
    records = [(b"k", None, [("h", b"x"), ("n", None)]), (None, b"v" * 300, [])]
    found = decode_records(encode_records(records, 5), [(0, 1, 1)], "t", 0, None)[0]
    assert [(each.key, each.value, each.headers) for each in found] == records
    assert [each.timestamp for each in found] == [5, 5]
    with pytest.raises(ValueError, match="at least one record"):
        encode_records([], 5)
