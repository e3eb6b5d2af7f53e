"""Acquisition locks: when they expire, and who gets the records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, RENEW, Bench

from sharecore.errors import KafkaError


def test_a_lock_that_runs_out_wakes_a_fetch_that_waits() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.world.run(29_800)
    bench.fetch("n")
    bench.world.run(199)
    assert bench.answers == {}
    bench.world.run(2)
    assert bench.answers["n"][0].acquired == [(0, 9, 2)]
    with pytest.raises(KafkaError, match="INVALID_RECORD_STATE"):
        bench.settle("m", (0, 9, ACCEPT))


def test_who_waits_for_a_lock_to_run_out_comes_before_who_asks_when_it_has() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.world.run(29_800)
    bench.fetch("n")
    bench.persister.hold = True
    bench.world.run(201)
    assert bench.persister.held, "what has run out is still being written"
    assert bench.take("late") == []
    assert bench.answers["n"][0].acquired == [(0, 9, 2)]


def test_locks_that_were_renewed_run_on() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.world.run(20_000)
    bench.settle("m", (0, 9, RENEW))
    bench.world.run(20_000)
    assert bench.take("n") == []
    bench.world.run(10_001)
    assert bench.take("n") == [(0, 9, 2)]


def test_locks_renewed_after_the_duration_was_shortened_run_by_the_new_one() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.world.run(1_000)
    bench.config = replace(EARLIEST, share_record_lock_duration_ms=15_000)
    bench.leaders.reconfigure("g")
    bench.settle("m", (0, 4, RENEW), (5, 9, ACCEPT))
    bench.fetch("n", LIMITS._replace(max_wait_ms=60_000))
    bench.world.run(14_999)
    assert bench.answers == {}
    bench.world.run(2)
    assert bench.answers["n"][0].acquired == [(0, 4, 2)]


def test_records_given_up_without_a_write_are_not_said_to_be_settled() -> None:
    """A lock at the delivery limit expires, the write of that fails, and its member acknowledges late."""
    bench = Bench(replace(EARLIEST, share_delivery_count_limit=2))
    bench.logs[0].produce(10)
    for _ in range(2):
        assert bench.take("m")
        bench.persister.fail_next = 1
        bench.world.run(30_001)
    with pytest.raises(KafkaError, match="INVALID_RECORD_STATE: offset 0 is"):
        bench.settle("m", (0, 9, ACCEPT))
    # otherwise this would be a confirmed record that is redelivered
    bench.leaders = bench.fresh()
    assert bench.take("n") == [(0, 9, 1)]


def test_records_given_up_are_passed_over_once_that_is_written() -> None:
    bench = Bench(replace(EARLIEST, share_delivery_count_limit=1))
    bench.logs[0].produce(10)
    bench.take("m")
    bench.persister.fail_next = 1
    bench.world.run(30_001)
    bench.logs[0].produce(10)
    bench.take("n")
    bench.settle("n", (10, 19, ACCEPT))
    bench.settle("m", (0, 9, ACCEPT))
    assert bench.ends == [None, None]
    bench.leaders = bench.fresh()
    assert bench.take("o") == []
