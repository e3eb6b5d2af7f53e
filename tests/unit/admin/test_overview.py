"""The displayed lag of share groups: unknown is not zero."""

from __future__ import annotations

import time

import pytest

from sharecore.admin.overview import GroupOverview, Position, Positioned
from sharecore.admin.watch import Look, group_figures
from sharecore.page.looker import Trails


@pytest.mark.parametrize(
    ("lags", "unplaced", "lag"),
    [
        ({"a": [1, 2], "b": [0]}, set(), 3),
        ({"a": [1, -1], "b": [0]}, set(), None),
        ({"a": [1, 2]}, {"a"}, None),
        ({"a": [1, 2]}, {"b"}, None),
        ({}, {"b"}, None),
        ({}, set(), None),
    ],
)
def test_a_sum_with_an_unknown_part_is_unknown(
    lags: dict[str, list[int]], unplaced: set[str], lag: int | None
) -> None:
    positions: dict[str, dict[int, Positioned]] = {
        topic: {index: Position(0, each) for index, each in enumerate(some)} for topic, some in lags.items()
    }
    group = GroupOverview("g", "Stable", positions=positions, unplaced=unplaced)
    now = Look(time.monotonic(), {"g": group}, None, {}, {})
    (figures,) = group_figures(now, None)
    assert figures.lag == group.total_lag() == lag
    trails = Trails()
    trails.add(now, 0.0)
    assert [value for _, value in trails.of("g")] == ([] if lag is None else [lag])


def test_what_is_known_of_a_topic_is_told_beside_what_is_not() -> None:
    group = GroupOverview("g", "Stable", positions={"a": {0: Position(0, 5), 1: Position(0, -1)}})
    assert (group.lag("a"), group.known_lag("a")) == (None, 5)
