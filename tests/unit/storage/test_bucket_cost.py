"""What a bucket is said to cost."""

from __future__ import annotations

import pytest

from sharecore.storage.bucket import Contents


def home(standbys: int, objects_an_hour: int) -> float:
    """Return the dollars of an hour of a home without data."""
    nodes = [*range(2, 2 + standbys)]
    found = Contents("c", 1, True, False, nodes, 1, 1, 0, 0, [], objects_an_hour)
    return found.dollars_an_hour


@pytest.mark.parametrize(
    ("objects_an_hour", "gets"),
    [
        # heartbeats alone: a look a second
        (1800, 3600),
        # ten objects a second: four looks a second, two more requests for each object
        (36_000, 4 * 3600 + 2 * (36_000 - 1800)),
    ],
)
def test_a_standby_costs_its_looks_and_lists(objects_an_hour: int, gets: int) -> None:
    standby = home(1, objects_an_hour) - home(0, objects_an_hour)
    assert standby == pytest.approx(gets * 0.4e-6 + 30 * 5e-6)
