"""A group's circuit breaker: after too many failures delivery pauses."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, REJECT, RELEASE, Bench

GAP = 0
LONG = LIMITS._replace(max_wait_ms=600_000)
BREAKER = replace(
    EARLIEST,
    share_breaker_percent=50,
    share_breaker_window_ms=10_000,
    share_breaker_min_records=20,
    share_breaker_pause_ms=5000,
)
CLOSED, HALF_OPEN, OPEN = 0, 1, 2


def state(bench: Bench) -> int:
    breaker = bench.leaders.breaker("g")
    assert breaker is not None
    return breaker[0]


def began(**settings: Any) -> Bench:
    """Return a group with 100 records held by a member, and 1,000 more."""
    bench = Bench(replace(BREAKER, **settings))
    bench.logs[0].produce(100)
    assert bench.take("m", LIMITS._replace(max_records=100)) == [(0, 99, 1)]
    bench.logs[0].produce(*[1] * 1000)
    return bench


def broken(**settings: Any) -> Bench:
    bench = began(**settings)
    bench.settle("m", (0, 19, REJECT))
    assert state(bench) == OPEN
    return bench


def test_rejections_open_it_and_nothing_is_acquired_before_the_pause_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = began()
    bench.settle("m", (0, 18, REJECT))
    assert state(bench) == CLOSED
    with caplog.at_level(logging.WARNING):
        bench.settle("m", (19, 19, REJECT))
    expected = "share group g: breaker open: 20 of 20 records were archived; delivery is paused for 5000 ms"
    assert caplog.messages == [expected]
    bench.fetch("n", LONG)
    bench.world.run(4999)
    assert bench.answers == {}
    assert bench.leaders.held_back("g") == (0, 0, 1)
    bench.world.run(1)
    assert bench.answers["n"][0].acquired == [(100, 109, 1)]
    assert state(bench) == HALF_OPEN


def test_records_that_ended_before_the_window_do_not_count() -> None:
    bench = began()
    bench.settle("m", (0, 18, REJECT))
    bench.world.run(11_000)
    bench.settle("m", (19, 37, REJECT))
    assert state(bench) == CLOSED
    bench.settle("m", (38, 38, REJECT))
    assert state(bench) == OPEN


def test_what_members_hold_is_settled_while_it_is_open_and_does_not_count() -> None:
    bench = broken()
    bench.settle("m", (20, 59, ACCEPT))
    bench.settle("m", (60, 79, RELEASE))
    assert bench.ends == [None, None, None]
    assert bench.take("n") == []
    assert state(bench) == OPEN


def test_ten_that_end_well_close_it() -> None:
    bench = broken()
    bench.world.run(5000)
    assert bench.take("n") == [(100, 109, 1)]
    assert bench.take("n") == []
    bench.fetch("other", LONG)
    bench.leader().acknowledge("n", [(100, 104, bytes([ACCEPT]))], bench.ends.append)
    assert bench.answers.pop("other")[0].acquired == [(110, 114, 1)]
    bench.fetch("other", LONG)
    bench.leader().acknowledge("n", [(105, 109, bytes([ACCEPT]))], bench.ends.append)
    assert state(bench) == CLOSED
    assert bench.answers["other"][0].acquired == [(115, 614, 1)]


def test_ten_of_which_half_are_given_up_open_it_again() -> None:
    bench = broken()
    bench.world.run(5000)
    bench.take("n")
    for first, kind in ((100, REJECT), (105, ACCEPT)):
        bench.leader().acknowledge("n", [(first, first + 4, bytes([kind]))], bench.ends.append)
    assert bench.leaders.breaker("g") == (OPEN, bench.world.monotonic_ms() + 5000, 2)
    assert bench.take("n") == []


def test_records_that_come_back_are_replaced_so_that_half_open_does_not_last() -> None:
    bench = broken(share_delivery_count_limit=10)
    bench.world.run(5000)
    for delivery in range(1, 4):
        assert bench.take("n") == [(100, 109, delivery)]
        bench.leader().release("n")
    assert bench.take("n") == [(100, 109, 4)]
    bench.fetch("other", LONG)
    bench.world.run(30_001)
    assert bench.answers["other"][0].acquired, "their locks have run out"
    assert state(bench) == HALF_OPEN


def test_the_delivery_limit_gives_up_and_gaps_and_expired_records_do_not() -> None:
    bench = began(share_delivery_count_limit=2)
    bench.settle("m", (0, 99, GAP))
    assert state(bench) == CLOSED
    for _ in range(2):
        assert state(bench) == CLOSED
        taken = bench.take("m", LIMITS._replace(max_records=30))
        bench.settle("m", *((first, last, RELEASE) for first, last, _ in taken))
    assert state(bench) == OPEN
    expiring = Bench(replace(BREAKER, share_record_ttl_ms=1000))
    expiring.logs[0].produce(*[1] * 100)
    expiring.world.run(10_000)
    assert expiring.take("m") == []
    expiring.world.run(1000)
    assert (expiring.engine().start_offset, state(expiring)) == (100, CLOSED)


def test_a_member_that_leaves_counts_for_nothing_but_records_at_their_limit() -> None:
    bench = began(share_delivery_count_limit=2)
    bench.leader().release("m")
    assert state(bench) == CLOSED
    bench.take("m", LIMITS._replace(max_records=100))
    bench.leader().release("m")
    assert state(bench) == OPEN


def test_a_write_that_fails_counts_for_nothing() -> None:
    bench = began()
    bench.persister.fail_next = 1
    bench.settle("m", (0, 99, REJECT))
    assert state(bench) == CLOSED


def test_turned_off_it_lets_everything_through_at_once() -> None:
    bench = broken()
    bench.fetch("n", LONG)
    bench.config = EARLIEST
    bench.leaders.reconfigure("g")
    assert bench.answers["n"][0].acquired == [(100, 599, 1)]
    assert bench.leaders.breaker("g") is None
