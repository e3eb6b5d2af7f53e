"""The progress of a group, from its state and the ends of the log."""

from __future__ import annotations

import pytest

from sharecore.jobs.changes import Change, batches
from sharecore.jobs.windows import Window, archived, first_unsettled, window

BATCHES = [(10, 14, 2, 1), (15, 17, 0, 2), (18, 19, 4, 5), (25, 26, 0, 4)]


def test_what_is_not_done() -> None:
    assert window(10, 7, BATCHES, 0, 100) == Window(83, 7, 5, 78, 4, 15)


def test_a_broker_that_wrote_no_count() -> None:
    assert window(10, -1, BATCHES, 0, 100) == window(10, 7, BATCHES, 0, 100)


def test_a_log_that_was_cut_from_its_start() -> None:
    assert window(10, 7, BATCHES, 16, 100) == Window(82, 2, 4, 78, 4, 16)
    assert window(10, 7, BATCHES, 18, 100) == Window(80, 2, 2, 78, 4, 20)


def test_everything_is_done() -> None:
    assert window(50, 0, [], 0, 50) == Window(0, 0, 0, 0, 0, None)
    assert window(10, 5, [(10, 14, 2, 1)], 0, 15) == Window(0, 5, 0, 0, 0, None)


def test_a_group_that_has_not_begun_and_a_topic_that_is_gone() -> None:
    assert window(-1, -1, [], 0, 50) == Window(None, None, 0, None, 0, None)
    assert window(10, 7, BATCHES, None, None) == Window(None, None, 5, None, 4, None)


@pytest.mark.parametrize(("start", "first"), [(10, 15), (9, 9), (15, 15), (18, 20), (25, 25), (27, 27)])
def test_the_first_that_is_not_settled(start: int, first: int) -> None:
    assert first_unsettled(start, BATCHES) == first


def change(kind: str, state_epoch: int | None, *ranges: tuple[int, int, int, int]) -> Change:
    return Change(0, 0, kind, 0, state_epoch, 0, 0, 0, ranges)


def test_what_was_archived_stays_known_below_the_start_offset() -> None:
    history = [
        change("snapshot", 0),
        change("update", None, (0, 4, 2, 1), (5, 6, 4, 1)),
        change("update", None, (7, 8, 4, 5), (9, 9, 0, 1)),
        change("snapshot", 0, (12, 12, 4, 3)),
    ]
    assert list(archived(history)) == [(5, 6, 1), (7, 8, 5), (12, 12, 3)]


def test_a_reset_begins_anew() -> None:
    history = [change("snapshot", 0, (5, 6, 4, 1)), change("snapshot", 1, (9, 9, 4, 2))]
    assert list(archived(history)) == [(9, 9, 2)]
    assert list(archived([*history, change("tombstone", None)])) == []


def test_batches_of_a_row() -> None:
    row = {"firstOffset": 1, "lastOffset": 2, "deliveryState": 4, "deliveryCount": 3}
    assert batches([row]) == [(1, 2, 4, 3)]
    assert batches(None) == []
