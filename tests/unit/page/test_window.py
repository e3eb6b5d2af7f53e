from __future__ import annotations

import pytest

from sharecore._core import Partition
from sharecore.page.window import RUNS_MAX, Run, of_leader
from sharecore.reference import Partition as Reference


def test_runs_are_cut_where_leases_begin_and_end() -> None:
    window = of_leader(
        0, 19, [(0, 9, 1, 1), (10, 12, 2, 1), (13, 19, 1, 2)],
        [(0, 4, "a", 1500), (5, 9, "b", 900), (15, 19, "a", None)], 1000, 30,
    )  # fmt: skip
    assert window.runs == [
        Run(0, 4, 1, 1, "a", 500), Run(5, 9, 1, 1, "b", 0), Run(10, 12, 2, 1),
        Run(13, 14, 1, 2), Run(15, 19, 1, 2, "a", None),
    ]  # fmt: skip
    assert (window.source, window.log_end, window.cut) == ("leader", 30, False)


def test_one_lease_over_several_runs() -> None:
    window = of_leader(0, 9, [(0, 3, 1, 1), (4, 9, 2, 1)], [(0, 9, "a", 50)], 0, 10)
    assert window.runs == [Run(0, 3, 1, 1, "a", 50), Run(4, 9, 2, 1, "a", 50)]


def test_a_browser_is_given_no_more_than_it_can_draw() -> None:
    inflight = [(offset, offset, offset % 2, 1) for offset in range(RUNS_MAX + 1)]
    window = of_leader(0, RUNS_MAX, inflight, [], 0, RUNS_MAX + 1)
    assert (len(window.runs), window.cut) == (RUNS_MAX, True)


@pytest.mark.parametrize("engine", [Partition, Reference], ids=["rust", "reference"])
def test_leases_of_an_engine(engine: type[Partition]) -> None:
    partition = engine(lock_ms=100)
    partition.acquire(0, "a", [(0, 9)], fetch_offset=0)
    partition.acquire(40, "b", [(10, 14)], fetch_offset=10)
    assert partition.leases() == [(0, 9, "a", 100), (10, 14, "b", 140)]
    write = partition.acknowledge(50, "a", [(0, 1, b"\1"), (2, 3, b"\2"), (6, 6, b"\4")])
    assert write is not None
    # pending writes show as held, and renewed records have their own deadline
    assert partition.leases() == [(0, 5, "a", 100), (6, 6, "a", 150), (7, 9, "a", 100), (10, 14, "b", 140)]
    partition.commit(write.id, 50)
    assert partition.leases() == [(4, 5, "a", 100), (6, 6, "a", 150), (7, 9, "a", 100), (10, 14, "b", 140)]
    window = of_leader(
        partition.start_offset, partition.end_offset, partition.inflight(), partition.leases(), 60, 15
    )
    assert window.runs == [
        Run(2, 3, 0, 1), Run(4, 5, 1, 1, "a", 40), Run(6, 6, 1, 1, "a", 90), Run(7, 9, 1, 1, "a", 40),
        Run(10, 14, 1, 1, "b", 80),
    ]  # fmt: skip
