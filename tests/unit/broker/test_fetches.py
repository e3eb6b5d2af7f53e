"""When a standby fetches sealed segments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sharecore.broker.lobby.fetches import FetchSchedule


def fetched(segment_at: Callable[[int], int], place_at: Callable[[int], int], seconds: int) -> list[int]:
    """Return the seconds in which a standby fetches that looks once a second."""
    schedule, found = FetchSchedule(), []
    for now_s in range(seconds):
        if schedule.is_due(now_s, place_at(now_s), segment_at(now_s)):
            schedule.begin(now_s, place_at(now_s))
            found.append(now_s)
    return found


@pytest.mark.parametrize(
    ("segment_s", "expected"),
    [
        # a segment every 6 s: the busiest home fetches every 30 s
        (6, [0, 30, 60, 90]),
        (50, [0, 60, 110]),
        (1000, [0]),
    ],
)
def test_segments_are_fetched_soon_after_they_are_sealed(segment_s: int, expected: list[int]) -> None:
    assert fetched(lambda now_s: 1 + now_s // segment_s, lambda now_s: now_s, 120) == expected


@pytest.mark.parametrize(
    ("objects_a_second", "expected"), [(0, [0]), (1, [0, 500, 1000]), (10, [0, 300, 600, 900])]
)
def test_a_home_with_one_segment_is_fetched_again_if_much_was_written(
    objects_a_second: int, expected: list[int]
) -> None:
    assert fetched(lambda _: 1, lambda now_s: now_s * objects_a_second, 1100) == expected


def test_a_segment_that_ends_shortly_before_a_fetch_is_fetched_by_the_next_one() -> None:
    def segment_at(now_s: int) -> int:
        return 1 + (now_s >= 100) + (now_s >= 105)

    assert fetched(segment_at, lambda _: 1, 1000) == [0, 110, 140]


def test_a_fetch_that_failed_is_repeated() -> None:
    schedule = FetchSchedule()
    assert schedule.is_due(0, 5, 1)
    schedule.begin(0, 5)
    schedule.fail(60)
    assert not schedule.is_due(59, 5, 1)
    assert schedule.is_due(60, 5, 1)
    schedule.begin(60, 5)
    assert not schedule.is_due(61, 5, 1)
