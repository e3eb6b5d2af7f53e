"""Part of `make differential-dlq`, and that it sees a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.differential.dlq.known import unexplained
from tests.differential.dlq.registry import ALONE, SCENARIOS, SLOW
from tests.differential.dlq.run import compare, play
from tests.differential.dlq.side import Side

PLAYED = [
    "rejected_in_ranges",
    "given_back_at_the_limit",
    "causes_side_by_side",
    "copies",
    "topic_is_missing",
    "topic_is_set_up",
    "topic_that_exists_is_permitted",
    "fewer_partitions",
    "value_is_too_large",
    "a_range_is_split",
    "transactions",
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Side]]:
    home = tmp_path_factory.mktemp("dlq")
    made = {
        "apache": Side(home / "apache", "apache"),
        "ours": Side(home / "ours", "sharecore"),
    }
    try:
        with ThreadPoolExecutor() as all_of_them:
            list(all_of_them.map(Side.start, made.values()))
        yield made
    finally:
        for side in made.values():
            side.stop()


@pytest.mark.timeout(180)
def test_letters_are_apaches(sides: dict[str, Side]) -> None:
    assert set(PLAYED) <= SCENARIOS.keys() - ALONE - SLOW
    differing, counts = compare((sides["apache"], sides["ours"]), PLAYED, print, together=3)
    assert differing == {}
    assert counts["own headers"] > 0
    assert counts["control records"] == 1


def test_a_difference_is_found(sides: dict[str, Side]) -> None:
    counts: Counter[str] = Counter()
    whole, lost = (play(sides["ours"], "copies", salt) for salt in ("a", "a2"))
    del lost["letters"][0][3]
    found = unexplained("copies", whole, lost, counts)
    assert [path for path, _, _ in found] == [("letters", 0)]
    assert not counts
