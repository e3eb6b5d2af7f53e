"""Fetches of records that lie on the disk alone: a thread reads them first."""

from __future__ import annotations

from tests.unit.partition.bench import LIMITS, Bench


def test_what_lies_on_the_disk_is_leased_once_it_has_been_read() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.logs[0].cold = True
    bench.fetch("m")
    bench.fetch("n")
    assert bench.answers == {}
    assert len(bench.logs[0].warming) == 1, "one read for all who wait"
    bench.logs[0].warmed()
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]
    assert "n" not in bench.answers


def test_a_fetch_that_does_not_wait_still_gets_what_lies_on_the_disk() -> None:
    bench = Bench(partitions=2)
    at_once = LIMITS._replace(max_wait_ms=0)
    for log in bench.logs:
        log.produce(10)
        log.cold = True
    for member in "mno":
        bench.fetch(member, at_once)
    assert bench.answers == {}
    bench.logs[0].warmed()
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]
    assert list(bench.answers) == ["m"], "the other partition is still being read"
    bench.logs[1].warmed()
    assert bench.answers["n"][0].acquired == [(0, 9, 1)]
    assert bench.answers["o"] == [], "what was read went to others"


def test_a_fetch_whose_time_ends_while_the_disk_is_read_gets_what_is_read() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.logs[0].cold = True
    bench.fetch("m")
    bench.world.run(1000)
    assert bench.answers == {}
    bench.logs[0].warmed()
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]


def test_a_fetch_that_asks_for_no_records_does_not_wait_for_the_disk() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.logs[0].cold = True
    bench.fetch("m")
    bench.fetch("n", LIMITS._replace(max_records=0))
    assert bench.answers == {"n": []}


def test_a_disk_that_never_tells_what_it_has_in_memory_is_read_all_the_same() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.logs[0].cold = True
    bench.fetch("m")
    for _ in range(2):
        bench.logs[0].warmed(still_cold=True)
        assert bench.answers == {}, "a thread reads again: the loop waits for no disk"
    bench.logs[0].warmed(still_cold=True)
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]
