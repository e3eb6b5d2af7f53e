"""Paused groups: nothing is acquired, everything else continues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, RELEASE, Bench


def change(bench: Bench, **settings: Any) -> None:
    bench.config = replace(bench.config, **settings)
    bench.leaders.reconfigure("g")


def test_a_paused_group_gets_nothing_until_it_is_resumed() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    change(bench, share_paused=True)
    bench.fetch("m", LIMITS._replace(max_wait_ms=60_000))
    bench.logs[0].produce(10)
    bench.world.run(50_000)
    assert bench.answers == {}
    change(bench, share_paused=False)
    assert bench.answers["m"][0].acquired == [(0, 19, 1)]


def test_a_fetch_of_a_paused_group_ends_empty_after_its_wait() -> None:
    bench = Bench(replace(EARLIEST, share_paused=True))
    bench.logs[0].produce(10)
    bench.fetch("m")
    bench.world.run(499)
    assert bench.answers == {}
    bench.world.run(1)
    assert bench.answers == {"m": []}


@pytest.mark.parametrize("seconds", [5, 150])
def test_a_pause_with_a_time_ends_by_itself(seconds: int) -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    change(bench, share_paused_until_ms=bench.world.now_ms() + seconds * 1000)
    bench.fetch("m", LIMITS._replace(max_wait_ms=600_000))
    bench.world.run(seconds * 1000 - 1)
    assert bench.answers == {}
    bench.world.run(1)
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]


def test_a_time_that_is_over_pauses_nothing_and_a_lasting_pause_outlasts_a_time() -> None:
    bench = Bench(replace(EARLIEST, share_paused_until_ms=1))
    bench.logs[0].produce(10)
    assert bench.take("m") == [(0, 9, 1)]
    bench.logs[0].produce(10)
    change(bench, share_paused=True, share_paused_until_ms=bench.world.now_ms() + 1000)
    bench.world.run(2000)
    assert bench.take("m") == []


def test_a_clock_that_is_set_anew_is_noticed_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    change(bench, share_paused_until_ms=bench.world.now_ms() + 3_600_000)
    bench.fetch("m", LIMITS._replace(max_wait_ms=600_000))
    monkeypatch.setattr(bench.world, "now_ms", lambda: int(bench.world.ms) + 7_200_000)
    bench.world.run(60_000)
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]


def test_acknowledgements_and_lock_timeouts_go_on_in_a_paused_group() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    assert bench.take("m") == [(0, 9, 1)]
    change(bench, share_paused=True)
    bench.settle("m", (0, 3, ACCEPT), (4, 4, RELEASE))
    assert bench.ends == [None]
    bench.world.run(EARLIEST.share_record_lock_duration_ms)
    assert bench.take("n") == []
    change(bench, share_paused=False)
    assert bench.take("n") == [(4, 9, 2)]


def test_a_leader_that_loads_in_a_paused_group_leases_nothing_either() -> None:
    bench = Bench(replace(EARLIEST, share_paused_until_ms=1_000_000 + 5000), partitions=2)
    bench.logs[1].produce(10)
    bench.leaders = bench.fresh()
    assert bench.take("m") == []
    bench.world.run(5000)
    assert bench.take("m") == [(0, 9, 1)]
