"""Limits of a group and its members: a rate, a member limit, topic weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, RELEASE, Bench

LONG = LIMITS._replace(max_wait_ms=600_000)


def change(bench: Bench, **settings: Any) -> None:
    bench.config = replace(bench.config, **settings)
    bench.leaders.reconfigure("g")


def records(ranges: list[tuple[int, int, int]]) -> int:
    return sum(last - first + 1 for first, last, _ in ranges)


def test_a_member_holds_no_more_than_it_may_and_gets_more_once_that_is_settled() -> None:
    bench = Bench(replace(EARLIEST, share_member_max_record_locks=7))
    bench.logs[0].produce(5, 5, 5)
    assert bench.take("m") == [(0, 6, 1)], "not even to complete a record batch"
    bench.fetch("m", LONG)
    assert bench.answers == {}
    assert bench.take("n") == [(7, 9, 1), (10, 13, 1)], "another member has a bound of its own"
    bench.settle("m", (0, 2, ACCEPT))
    assert bench.answers["m"][0].acquired == [(14, 14, 1)]


def test_the_bound_of_a_member_is_over_all_share_partitions() -> None:
    bench = Bench(replace(EARLIEST, share_member_max_record_locks=7), partitions=2)
    for log in bench.logs:
        log.produce(5)
    assert bench.take("m") == [(0, 4, 1), (0, 1, 1)]
    assert bench.take("m") == []


def test_locks_that_run_out_and_sessions_that_end_make_room_too() -> None:
    bench = Bench(replace(EARLIEST, share_member_max_record_locks=5))
    bench.logs[0].produce(20)
    assert bench.take("m") == [(0, 4, 1)]
    bench.fetch("m", LONG)
    bench.world.run(EARLIEST.share_record_lock_duration_ms)
    assert bench.answers.pop("m")[0].acquired == [(0, 4, 2)]
    bench.fetch("m", LONG)
    bench.leader().release("m")
    assert bench.answers["m"][0].acquired == [(0, 4, 3)]


def test_a_bound_that_is_raised_or_taken_away_wakes_fetches() -> None:
    bench = Bench(replace(EARLIEST, share_member_max_record_locks=5))
    bench.logs[0].produce(20)
    assert bench.take("m") == [(0, 4, 1)]
    bench.fetch("m", LONG)
    change(bench, share_member_max_record_locks=8)
    assert bench.answers.pop("m")[0].acquired == [(5, 7, 1)]
    bench.fetch("m", LONG)
    change(bench, share_member_max_record_locks=0)
    assert bench.answers["m"][0].acquired == [(8, 19, 1)]


def test_a_fetch_that_its_bound_keeps_waiting_ends_empty() -> None:
    bench = Bench(replace(EARLIEST, share_member_max_record_locks=5))
    bench.logs[0].produce(20)
    bench.take("m")
    bench.fetch("m")
    bench.world.run(500)
    assert bench.answers == {"m": []}


def test_a_group_gets_so_many_records_a_second() -> None:
    bench = Bench(replace(EARLIEST, share_records_per_second=100))
    bench.logs[0].produce(*[1] * 1000)
    got = records(bench.take("m"))
    assert got == 100
    bench.fetch("m", LONG)
    bench.fetch("n", LONG)
    bench.world.run(49)
    assert bench.answers == {}
    for _ in range(9_951):
        bench.world.run(1)
        for member in ("m", "n"):
            results = bench.answers.pop(member, None)
            if results is not None:
                got += records([each for result in results for each in result.acquired])
                bench.fetch(member, LONG)
    assert 1095 > got >= 995


def test_fetches_that_the_rate_keeps_waiting_are_served_in_turn() -> None:
    bench = Bench(replace(EARLIEST, share_records_per_second=10))
    bench.logs[0].produce(*[1] * 100)
    bench.take("m")
    few = LONG._replace(max_records=1)
    for member in "abc":
        bench.fetch(member, few)
    order = []
    for _ in range(400):
        bench.world.run(1)
        order += [member for member in bench.answers if member not in order]
    assert order == ["a", "b", "c"]


def test_a_record_batch_may_overdraw_the_rate_and_is_paid_back() -> None:
    bench = Bench(replace(EARLIEST, share_records_per_second=10))
    bench.logs[0].produce(100, 100)
    assert records(bench.take("m")) == 100
    bench.fetch("m", LONG)
    bench.world.run(9_000)
    assert bench.answers == {}
    bench.world.run(200)
    assert records(bench.answers["m"][0].acquired) == 100


def test_a_fetch_is_divided_by_the_weights_of_topics() -> None:
    bench = Bench(replace(EARLIEST, share_topic_weights=("urgent:8",)), partitions=2)
    for log, topic in zip(bench.logs, ("bulk", "urgent"), strict=True):
        log.topic = topic
        log.produce(*[1] * 1000)
    assert bench.take("m", LIMITS._replace(max_records=90)) == [(0, 9, 1), (0, 79, 1)]
    counts = [0, 0]
    for _ in range(90):
        bench.fetch("m", LIMITS._replace(max_records=1))
        for result in bench.answers.pop("m"):
            counts[result.partition.key.partition] += 1
    assert counts == [10, 80]


def test_what_a_topic_does_not_use_goes_to_others() -> None:
    bench = Bench(replace(EARLIEST, share_topic_weights=("urgent:100",)), partitions=2)
    for log, topic, count in zip(bench.logs, ("bulk", "urgent"), (1000, 3), strict=True):
        log.topic = topic
        log.produce(*[1] * count)
    assert records(bench.take("m", LIMITS._replace(max_records=100))) == 100


def test_settings_that_name_no_bound_change_nothing() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    assert bench.leader().bounds is None
    change(bench, share_topic_weights=("t:1",))
    assert bench.leader().bounds is not None
    change(bench, share_topic_weights=())
    assert bench.leader().bounds is None
    assert bench.take("m") == [(0, 9, 1)]
    bench.settle("m", (0, 9, RELEASE))
    assert bench.take("m") == [(0, 9, 2)]


def test_bounds_that_change_while_the_group_has_no_leaders_count_for_the_next() -> None:
    bench = Bench(replace(EARLIEST, share_member_max_record_locks=5))
    bench.logs[0].produce(20)
    bench.leader()
    bench.leaders.drop_all()
    change(bench, share_member_max_record_locks=8)
    assert records(bench.take("m")) == 8
    bench.leaders.drop_all()
    change(bench, share_member_max_record_locks=0)
    assert records(bench.take("n")) == 20
