"""Released records wait before they are redelivered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, REJECT, RELEASE, Bench

BACKOFF = replace(
    EARLIEST, share_retry_backoff_ms=1000, share_retry_backoff_max_ms=3000, share_retry_backoff_jitter=0.0
)
LONG = LIMITS._replace(max_wait_ms=600_000)


def change(bench: Bench, **settings: Any) -> None:
    bench.config = replace(bench.config, **settings)
    bench.leaders.reconfigure("g")


def test_a_fetch_that_waits_gets_a_released_record_when_it_has_waited_long_enough() -> None:
    bench = Bench(BACKOFF)
    bench.logs[0].produce(1)
    assert bench.take("m") == [(0, 0, 1)]
    for delivery, wait_ms in ((2, 1000), (3, 2000), (4, 3000), (5, 3000)):
        bench.settle("m", (0, 0, RELEASE))
        bench.fetch("m", LONG)
        bench.world.run(wait_ms - 1)
        assert bench.answers == {}
        bench.world.run(1)
        assert bench.answers.pop("m")[0].acquired == [(0, 0, delivery)]
    bench.settle("m", (0, 0, RELEASE))
    assert bench.engine().start_offset == 1, "at its delivery limit it is given up at once"


def test_a_leader_without_members_remembers_back_offs_that_run_and_that_have_ended() -> None:
    bench = Bench(BACKOFF)
    bench.logs[0].produce(2)
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE), (1, 1, ACCEPT))
    assert bench.leaders.drop_idle(-1) == 0
    bench.world.run(1000)
    assert bench.leaders.drop_idle(0) == 0
    assert bench.take("m") == [(0, 0, 2)], "not after another whole back-off"
    bench.settle("m", (0, 0, ACCEPT))
    bench.world.run(1000)
    assert bench.leaders.drop_idle(0) == 1


def test_leaders_without_members_are_freed_beyond_a_bound_the_least_recently_used_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(BACKOFF, partitions=3)
    for number in range(3):
        bench.logs[number].produce(1)
        assert bench.take("m", order=[number]) == [(0, 0, 1)]
        bench.leader(number).acknowledge("m", [(0, 0, bytes([RELEASE]))], bench.ends.append)
        bench.world.run(10)
    bench.world.run(100)
    leaders = bench.leaders
    assert leaders.drop_idle(0) == 0
    assert (leaders.idle_kept, leaders.idle_dropped) == (3, 0)
    one = leaders.idle_bytes // 3
    assert leaders.drop_idle(0, 2 * one + one // 2) == 1
    assert (leaders.idle_kept, leaders.idle_dropped, leaders.idle_bytes) == (2, 1, 2 * one)
    assert next(iter(leaders.by_topic().values())).keys() == {1, 2}, "the one used longest ago is gone"
    assert "unloaded 1 share partition that no member uses, although records wait there" in caplog.text
    assert leaders.drop_idle(0, 0) == 2
    assert (leaders.idle_kept, leaders.idle_dropped, leaders.idle_bytes) == (0, 3, 0)


def test_a_plain_leader_with_returned_records_is_freed() -> None:
    bench = Bench(EARLIEST)
    bench.logs[0].produce(1)
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE))
    bench.world.run(1000)
    assert bench.leaders.drop_idle(0) == 1


def test_new_records_and_others_pass_what_waits() -> None:
    bench = Bench(BACKOFF)
    bench.logs[0].produce(1, 1, 1)
    assert bench.take("m", LIMITS._replace(max_records=2)) == [(0, 1, 1)]
    bench.settle("m", (0, 0, RELEASE))
    assert bench.take("n") == [(2, 2, 1)]
    bench.logs[0].produce(1)
    assert bench.take("n") == [(3, 3, 1)]
    bench.settle("m", (1, 1, REJECT))
    bench.settle("n", (2, 3, ACCEPT))
    bench.world.run(1000)
    assert bench.take("n") == [(0, 0, 2)]


def test_a_lock_that_runs_out_has_its_records_wait_and_a_session_that_ends_does_not() -> None:
    bench = Bench(BACKOFF)
    bench.logs[0].produce(1)
    bench.take("m")
    bench.fetch("n", LONG)
    bench.world.run(BACKOFF.share_record_lock_duration_ms + 999)
    assert bench.answers == {}
    bench.world.run(1)
    assert bench.answers["n"][0].acquired == [(0, 0, 2)]
    bench.leader().release("n")
    assert bench.take("m") == [(0, 0, 3)]


@pytest.mark.parametrize("cause", ["release", "timeout"])
def test_one_of_release_and_timeout_alone(cause: str) -> None:
    bench = Bench(replace(BACKOFF, share_retry_backoff_on=(cause,)))
    bench.logs[0].produce(1)
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE))
    assert (bench.take("m") == []) is (cause == "release")
    bench.world.run(1000)
    bench.take("m")
    bench.world.run(BACKOFF.share_record_lock_duration_ms)
    assert (bench.take("m") == []) is (cause == "timeout")


def test_the_longest_wait_the_multiplier_and_jitter() -> None:
    bench = Bench(replace(BACKOFF, share_retry_backoff_multiplier=1.5, share_retry_backoff_jitter=0.5))
    bench.logs[0].produce(1)
    bench.take("m")
    for least_ms in (1000, 1500, 2250, 3000):
        bench.settle("m", (0, 0, RELEASE))
        before_ms = bench.world.ms
        bench.fetch("m", LONG)
        bench.world.run(least_ms - 1)
        assert bench.answers == {}
        while "m" not in bench.answers:
            bench.world.run(1)
        assert least_ms <= bench.world.ms - before_ms <= least_ms * 1.5
        bench.answers.clear()


def test_after_a_restart_nothing_comes_early() -> None:
    bench = Bench(BACKOFF)
    bench.logs[0].produce(1, 1)
    bench.take("m", LIMITS._replace(max_records=1))
    bench.settle("m", (0, 0, RELEASE))
    bench.world.run(900)
    bench.leaders = bench.fresh()
    assert bench.take("m") == [(1, 1, 1)], "what was never given back comes at once"
    bench.world.run(999)
    assert bench.take("m") == []
    bench.world.run(1)
    assert bench.take("m") == [(0, 0, 2)]


def test_locks_are_counted_and_not_the_window_and_what_waits_is_bounded() -> None:
    bench = Bench(replace(BACKOFF, share_partition_max_record_locks=100, share_partition_max_waiting=1000))
    bench.logs[0].produce(*[1] * 3000)
    for number in range(10):
        assert bench.take("m", LIMITS._replace(record_limit=True)) == [(number * 100, number * 100 + 99, 1)]
        assert bench.take("n") == []
        bench.settle("m", (number * 100, number * 100 + 99, RELEASE))
    assert bench.take("m") == [], "a thousand records wait"
    assert bench.engine().waiting() == (1000, True)
    bench.world.run(1000)
    assert bench.take("m", LIMITS._replace(record_limit=True)) == [(0, 99, 2)]


def test_rules_that_change_count_for_what_is_given_back_from_then_on() -> None:
    bench = Bench()
    bench.logs[0].produce(1, 1)
    bench.take("m")
    change(bench, share_retry_backoff_ms=1000, share_retry_backoff_jitter=0.0)
    bench.settle("m", (0, 0, RELEASE))
    bench.fetch("n", LONG)
    assert bench.answers == {}
    change(bench, share_retry_backoff_ms=60_000)
    bench.world.run(1000)
    assert bench.answers.pop("n")[0].acquired == [(0, 0, 2)]
    bench.settle("m", (1, 1, RELEASE))
    bench.fetch("n", LONG)
    change(bench, share_retry_backoff_ms=0)
    assert bench.answers["n"][0].acquired == [(1, 1, 2)], "without the setting nothing waits"


def test_what_waits_keeps_no_leader_from_being_handed_over() -> None:
    bench = Bench(BACKOFF)
    bench.logs[0].produce(1)
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE))
    assert not bench.leader().holds
