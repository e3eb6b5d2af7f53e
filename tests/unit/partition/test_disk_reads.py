"""Fetches of records that are only on disk: a thread reads them first."""

from __future__ import annotations

from tests.unit.partition.bench import LIMITS, Bench

from sharecore.errors import ErrorCode


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
    for _ in range(3):
        bench.logs[0].warmed(still_cold=True)
        assert bench.answers == {}, "a thread reads again, and at last locates, too: the loop waits for none"
    bench.logs[0].warmed(still_cold=True)
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]


def test_what_a_thread_has_read_is_leased_without_being_read_again() -> None:
    bench = Bench()
    log = bench.logs[0]
    log.produce(10, 10)
    log.cold = True
    bench.fetch("m")
    before = log.bytes_read
    log.read_by_thread()
    assert bench.answers["m"][0].acquired == [(0, 19, 1)]
    assert log.bytes_read - before == len(bench.answers["m"][0].records) == 200
    assert not bench.leader().leasing.keeps, "it is given once"


def test_what_was_read_for_a_fetch_that_ended_without_it_is_there_for_the_next_but_not_for_long() -> None:
    bench = Bench(partitions=3)
    for log in bench.logs:
        log.produce(10)
        log.cold = True
    bench.fetch("m")
    for log in bench.logs:
        log.read_by_thread()
    assert [result.partition for result in bench.answers["m"]] == [bench.leader(0)]
    bench.fetch("n", order=[1])
    assert bench.answers["n"][0].acquired == [(0, 9, 1)]
    assert bench.logs[1].warming == [], "it was not read again"
    assert bench.leader(2).leasing.keeps
    bench.world.run(1000)
    assert not bench.leader(2).leasing.keeps
    bench.fetch("o", order=[2])
    assert len(bench.logs[2].warming) == 1


def test_an_error_of_a_thread_is_told_where_the_records_are_wanted() -> None:
    bench = Bench()
    log = bench.logs[0]
    log.produce(10)
    log.cold = True
    bench.fetch("m")
    log.fail_reads()
    assert bench.answers == {}, "other partitions may have something"
    bench.world.run(500)
    log.fail_reads()
    (result,) = bench.answers["m"]
    assert result.error is not None
    assert result.error.code is ErrorCode.KAFKA_STORAGE_ERROR
    bench.fetch("n")
    log.read_by_thread()
    assert bench.answers["n"][0].acquired == [(0, 9, 1)], "and tried again by who comes next"


def test_a_fetch_has_no_more_read_than_it_may_carry_of_however_many_partitions() -> None:
    bench = Bench(partitions=60)
    for log in bench.logs:
        log.produce(10, 10, size=1000)
        log.cold = True
    few = LIMITS._replace(max_records=20, max_bytes=20_000)
    bench.fetch("m", few)
    assert bench.answers == {}
    assert [len(log.warming) for log in bench.logs] == [1] * 20 + [0] * 40
    bench.logs[0].read_by_thread()
    assert [result.partition for result in bench.answers["m"]] == [bench.leader(0)]
    bench.fetch("n", few, order=list(range(20, 60)))
    assert [len(log.warming) for log in bench.logs] == [0] + [1] * 39 + [0] * 20


def test_batches_larger_than_their_part_of_a_fetch_take_the_room_that_they_need() -> None:
    bench = Bench(partitions=10)
    for log in bench.logs:
        log.produce(1, size=5000)
        log.cold = True
    bench.fetch("m", LIMITS._replace(max_bytes=12_000))
    assert sum(len(log.warming) for log in bench.logs) == 3
    bench.logs[1].read_by_thread()
    assert [result.partition for result in bench.answers["m"]] == [bench.leader(1)]
