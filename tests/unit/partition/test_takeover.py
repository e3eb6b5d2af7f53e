"""After the loss of a leader nothing is acquired for a lock's duration (share.ordering.takeover.wait)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, Bench

from sharecore.errors import ConfigError, ErrorCode, KafkaError

WAITS = replace(EARLIEST, share_ordering="key", share_ordering_takeover_wait=True)
LONG = LIMITS._replace(max_wait_ms=600_000)
LOCK_MS = EARLIEST.share_record_lock_duration_ms


def fail(bench: Bench) -> None:
    bench.leader()._check_engine(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a defect"))


@pytest.mark.parametrize("ordering", ["key", "partition"])
def test_nothing_comes_until_the_locks_of_the_leader_before_have_run_out(ordering: str) -> None:
    bench = Bench(replace(WAITS, share_ordering=ordering))
    bench.logs[0].produce_keyed(b"a", b"a")
    assert bench.take("m") == [(0, 0, 1)]
    bench.world.run(1000)
    fail(bench)
    bench.fetch("n", LONG)
    bench.world.run(LOCK_MS - 1)
    assert "n" not in bench.answers
    assert bench.leader().takeover_left_ms == 1
    bench.world.run(1)
    assert bench.answers.pop("n")[0].acquired == [(0, 0, 1)]
    bench.settle("n", (0, 0, ACCEPT))
    assert bench.take("m") == [(1, 1, 1)]


def test_without_the_setting_records_come_at_once_and_turning_it_off_ends_the_wait() -> None:
    bench = Bench(replace(WAITS, share_ordering_takeover_wait=False))
    bench.logs[0].produce_keyed(b"a")
    bench.take("m")
    fail(bench)
    assert bench.take("n") == [(0, 0, 1)]
    bench.config = WAITS
    bench.leaders.reconfigure("g")
    fail(bench)
    bench.fetch("n", LONG)
    assert "n" not in bench.answers
    bench.config = replace(WAITS, share_ordering_takeover_wait=False)
    bench.leaders.reconfigure("g")
    assert bench.answers.pop("n")[0].acquired == [(0, 0, 1)]


def test_a_leader_that_was_not_used_for_long_waits_for_nobody() -> None:
    bench = Bench(WAITS)
    bench.logs[0].produce_keyed(b"a")
    bench.take("m")
    bench.world.run(LOCK_MS)
    assert bench.leaders.drop_idle(0) == 1
    assert bench.take("n") == [(0, 0, 2)]


def test_a_start_waits_for_groups_whose_members_held_records_and_counts_the_time_since() -> None:
    bench = Bench(WAITS)
    bench.logs[0].produce_keyed(b"a")
    predecessors = bench.leaders.predecessors
    predecessors.lost(0, lambda topic_id, partition: True, groups=["other"])
    assert bench.take("m") == [(0, 0, 1)]
    bench.settle("m", (0, 0, ACCEPT))
    bench.leaders.drop_all()
    bench.logs[0].produce_keyed(b"a")
    predecessors.lost(0, lambda topic_id, partition: True, groups=["g"], ago_ms=LOCK_MS - 10)
    assert bench.take("m") == []
    assert bench.leader().takeover_left_ms == 10
    bench.leaders.drop_all()
    predecessors.released(0)
    assert bench.take("m") == [(1, 1, 1)]


def test_who_holds_records_or_still_waits_is_noted_at_a_stop() -> None:
    bench = Bench(WAITS)
    bench.logs[0].produce_keyed(b"a")
    assert bench.leaders.groups_with_leases() == set()
    bench.take("m")
    assert bench.leaders.groups_with_leases() == {"g"}
    fail(bench)
    bench.take("m")
    assert bench.leaders.groups_with_leases() == {"g"}, "its members may hold what was leased before"


def test_it_counts_with_an_order_alone() -> None:
    WAITS.check_queue()
    with pytest.raises(ConfigError, match=r"share.ordering.takeover.wait=true: counts only with"):
        replace(WAITS, share_ordering="none").check_queue()
