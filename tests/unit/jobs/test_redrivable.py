"""Which records are redriven, in which portions and with which headers."""

from __future__ import annotations

from sharecore.admin.origin import redriven_headers
from sharecore.jobs.changes import Change
from sharecore.jobs.redrivable import EXHAUSTED, REJECTED, Portion, portions

HISTORY = [
    Change(0, 0, "snapshot", 0, 3, 0, 0, 0, [(0, 1, 4, 1)]),
    Change(0, 1, "update", 0, None, 0, 2, 0, [(5, 9, 4, 5), (10, 11, 0, 2), (12, 12, 4, 2)]),
]


def test_all_that_was_archived() -> None:
    assert portions(HISTORY, 5) == (3, [Portion([(0, 1, 1), (5, 9, 5), (12, 12, 2)], 3, 5, 0)])


def test_by_outcome() -> None:
    assert portions(HISTORY, 5, REJECTED)[1] == [Portion([(0, 1, 1), (12, 12, 2)], 3, 0, 0)]
    assert portions(HISTORY, 5, EXHAUSTED)[1] == [Portion([(5, 9, 5)], 0, 5, 0)]


def test_what_was_redriven_before_in_the_same_state_epoch_is_passed_over() -> None:
    done = [(3, 0), (3, 6), (3, 7), (2, 12), (3, 10)]
    assert portions(HISTORY, 5, done=done) == (
        3,
        [Portion([(1, 1, 1), (5, 5, 5), (8, 9, 5), (12, 12, 2)], 2, 3, 0), Portion((), 0, 0, 3)],
    )


def test_portions_of_a_size() -> None:
    found = portions(HISTORY, 5, size=3)[1]
    assert [portion.rejected + portion.exhausted for portion in found] == [2, 3, 3]
    assert [each for portion in found for each in portion.ranges] == [
        (0, 1, 1),
        (5, 7, 5),
        (8, 9, 5),
        (12, 12, 2),
    ]


def test_nothing_was_archived() -> None:
    assert portions([], 5) == (0, [])
    assert portions(HISTORY[1:], 9, EXHAUSTED)[1] == []


def headers(own: list[tuple[str, bytes | None]], **changed: int) -> list[tuple[str, bytes | None]]:
    origin = {"partition": 2, "offset": 77, "deliveries": 5} | changed
    return redriven_headers(own, topic="orders", group="workers", **origin)


def test_a_redriven_record_tells_where_it_was() -> None:
    own: list[tuple[str, bytes | None]] = [("kind", b"\xff"), ("kind", None)]
    assert headers(own) == [
        *own,
        ("__redrive.topic", b"orders"),
        ("__redrive.partition", b"2"),
        ("__redrive.offset", b"77"),
        ("__redrive.group", b"workers"),
        ("__redrive.delivery.count", b"5"),
        ("__redrive.count", b"1"),
    ]


def test_a_record_that_is_redriven_again_has_its_last_place_and_is_counted() -> None:
    again = headers(headers([("kind", b"x")]), offset=99)
    assert again[0] == ("kind", b"x")
    assert len(again) == 7
    assert dict(again)["__redrive.offset"] == b"99"
    assert dict(again)["__redrive.count"] == b"2"


def test_a_count_that_is_none_begins_anew() -> None:
    assert dict(headers([("__redrive.count", b"many")]))["__redrive.count"] == b"1"
