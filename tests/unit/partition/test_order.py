"""Records of a share partition are delivered in order, to one member at a time (share.ordering=partition)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, REJECT, RELEASE, RENEW, Bench

from sharecore.config import GroupConfig

ORDERED = replace(EARLIEST, share_ordering="partition")
LONG = LIMITS._replace(max_wait_ms=600_000)
LOCK_MS = EARLIEST.share_record_lock_duration_ms


def ordered(**settings: Any) -> GroupConfig:
    return replace(ORDERED, **settings)


def change(bench: Bench, **settings: Any) -> None:
    bench.config = replace(bench.config, **settings)
    bench.leaders.reconfigure("g")


def test_one_record_is_out_at_a_time_and_who_waits_gets_the_next_when_it_is_settled() -> None:
    bench = Bench(ORDERED)
    bench.logs[0].produce(3, 1)
    assert bench.take("m") == [(0, 0, 1)]
    bench.fetch("n", LONG)
    bench.settle("m", (0, 0, RENEW))
    assert (bench.take("m"), bench.answers) == ([], {})
    bench.settle("m", (0, 0, ACCEPT))
    assert bench.answers.pop("n")[0].acquired == [(1, 1, 1)]
    bench.settle("n", (1, 1, REJECT))
    assert bench.take("m") == [(2, 2, 1)]
    bench.settle("m", (2, 2, ACCEPT))
    assert bench.take("n") == [(3, 3, 1)]


def test_a_record_that_was_given_back_comes_before_those_behind_it() -> None:
    bench = Bench(ORDERED)
    bench.logs[0].produce(1, 1)
    for delivery, member in ((1, "m"), (2, "n"), (3, "m")):
        assert bench.take(member) == [(0, 0, delivery)]
        bench.settle(member, (0, 0, RELEASE))
    assert bench.take("n") == [(0, 0, 4)]
    bench.world.run(LOCK_MS)
    assert bench.take("m") == [(0, 0, 5)]
    bench.leader().release("m")
    assert bench.take("n") == [(1, 1, 1)], "it was given up at its delivery limit"


def test_so_many_come_together_as_a_run_may_have_across_record_batches_and_no_more() -> None:
    bench = Bench(ordered(share_ordering_run_max=3))
    bench.logs[0].produce(2, 2, 2)
    assert bench.take("m") == [(0, 2, 1)]
    bench.settle("m", (0, 0, ACCEPT), (2, 2, RELEASE))
    assert bench.take("n") == [], "one of the run is still held"
    bench.settle("m", (1, 1, RELEASE))
    assert bench.take("n", LIMITS._replace(max_records=2)) == [(1, 2, 2)]
    bench.settle("n", (1, 1, RELEASE), (2, 2, ACCEPT))
    assert bench.take("m") == [(1, 1, 3), (3, 3, 1)]


def test_the_first_record_holds_back_the_others_while_it_waits_for_its_next_delivery() -> None:
    bench = Bench(ordered(share_retry_backoff_ms=1000, share_retry_backoff_jitter=0.0))
    bench.logs[0].produce(1, 1)
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE))
    bench.fetch("n", LONG)
    bench.world.run(999)
    assert bench.answers == {}
    bench.world.run(1)
    assert bench.answers["n"][0].acquired == [(0, 0, 2)]


def test_a_run_ends_before_a_record_that_waits() -> None:
    bench = Bench(
        ordered(share_ordering_run_max=4, share_retry_backoff_ms=1000, share_retry_backoff_jitter=0.0)
    )
    bench.logs[0].produce(6)
    assert bench.take("m") == [(0, 3, 1)]
    bench.settle("m", (1, 1, RELEASE))
    bench.world.run(500)
    bench.settle("m", (0, 0, ACCEPT), (2, 2, ACCEPT), (3, 3, RELEASE))
    bench.world.run(500)
    assert bench.take("m") == [(1, 1, 2)]
    bench.settle("m", (1, 1, ACCEPT))
    assert bench.take("m") == []
    bench.world.run(500)
    assert bench.take("m") == [(3, 3, 2), (4, 5, 1)]


def test_order_holds_over_a_restart_also_for_what_no_state_tells_of() -> None:
    bench = Bench(ordered(share_ordering_run_max=5))
    bench.logs[0].produce(8)
    assert bench.take("m") == [(0, 4, 1)]
    bench.settle("m", (0, 0, ACCEPT), (2, 2, ACCEPT), (3, 3, RELEASE))
    bench.leaders = bench.fresh()
    change(bench, share_ordering_run_max=1)
    for offset, delivery in ((1, 1), (3, 2), (4, 1), (5, 1)):
        assert bench.take("n") == [(offset, offset, delivery)]
        bench.settle("n", (offset, offset, ACCEPT))


def test_what_the_log_has_lost_holds_nothing_up_once_nobody_has_it_any_more() -> None:
    bench = Bench(ORDERED)
    bench.logs[0].produce(1, 1, 1)
    bench.take("m")
    bench.logs[0].delete_records(1)
    assert bench.take("n") == [], "whoever has the lost record may still be at work"
    bench.world.run(LOCK_MS)
    assert bench.take("n") == [(1, 1, 1)]


def test_the_order_may_be_turned_on_and_off_while_records_are_out() -> None:
    bench = Bench()
    bench.logs[0].produce(1, 1, 1, 1)
    bench.take("m", LIMITS._replace(max_records=2))
    change(bench, share_ordering="partition")
    assert bench.take("n") == []
    bench.settle("m", (0, 0, RELEASE), (1, 1, RELEASE))
    assert bench.take("n") == [(0, 0, 2)]
    bench.fetch("m", LONG)
    change(bench, share_ordering="none")
    assert bench.answers["m"][0].acquired == [(1, 1, 2), (2, 3, 1)]


def test_nothing_is_read_ahead_while_a_member_holds_the_first_record_or_that_one_waits() -> None:
    """Even if records are examined before delivery, as for a time to live."""
    bench = Bench(
        ordered(share_record_ttl_header="ttl", share_retry_backoff_ms=1000, share_retry_backoff_jitter=0.0)
    )
    bench.logs[0].produce(1, 1, 1)
    leader = bench.leader()
    assert bench.take("m") == [(0, 0, 1)]
    assert not leader.fetchable, "a member holds the first record"
    bench.settle("m", (0, 0, RELEASE))
    assert not leader.fetchable, "the first record waits"
    bench.world.run(1000)
    assert leader.fetchable
    assert bench.take("n") == [(0, 0, 2)]
    bench.settle("n", (0, 0, ACCEPT))
    assert leader.fetchable, "the next record has not been read"
    assert bench.take("m") == [(1, 1, 1)]
