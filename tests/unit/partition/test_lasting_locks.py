"""Locks extended while their member is connected (`share.record.lock.keep`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, RENEW, Bench

CONNECTED = replace(EARLIEST, share_record_lock_keep="connected")


def began(config: Any = CONNECTED) -> Bench:
    bench = Bench(config)
    bench.logs[0].produce(10)
    bench.connected = {"m"}
    assert bench.take("m") == [(0, 9, 1)]
    return bench


def test_a_lock_goes_on_while_its_member_is_connected() -> None:
    bench = began()
    bench.world.run(300_000)
    assert bench.take("n") == []
    bench.settle("m", (0, 4, ACCEPT))
    assert bench.ends == [None]
    bench.connected.clear()
    bench.world.run(30_000)
    assert bench.take("n") == [(5, 9, 2)]


def test_a_session_that_ends_gives_its_records_back_at_once() -> None:
    bench = began()
    bench.world.run(100_000)
    bench.leader().release("m")
    assert bench.take("n") == [(0, 9, 2)]


def test_a_lock_is_kept_no_longer_than_the_group_allows() -> None:
    bench = began(replace(CONNECTED, share_record_lock_keep_max_ms=70_000))
    bench.world.run(69_999)
    assert bench.take("n") == []
    bench.world.run(2)
    assert bench.take("n") == [(0, 9, 2)]


def test_the_time_begins_anew_with_a_renewal_and_counts_even_where_renewals_are_refused() -> None:
    bench = began(replace(CONNECTED, share_record_lock_keep_max_ms=70_000))
    bench.world.run(60_000)
    bench.settle("m", (0, 9, RENEW))
    bench.world.run(69_000)
    assert bench.take("n") == []
    bench.world.run(1_001)
    assert bench.take("n") == [(0, 9, 2)]
    refusing = began(replace(CONNECTED, share_renew_acknowledge_enable=False))
    refusing.world.run(100_000)
    assert refusing.take("n") == []


@pytest.mark.parametrize("ordering", ["none", "partition", "key"])
def test_managed_groups_keep_locks_too(ordering: str) -> None:
    bench = began(replace(CONNECTED, share_retry_backoff_ms=1000, share_ordering="none"))
    bench.config = replace(bench.config, share_ordering=ordering)
    bench.leaders.reconfigure("g")
    bench.world.run(100_000)
    assert bench.take("n") == []
    assert [each[2] for each in bench.engine().leases()] == ["m"]


def test_a_group_without_the_setting_asks_for_no_session() -> None:
    bench = began(EARLIEST)
    bench.world.run(30_001)
    assert bench.take("n") == [(0, 9, 2)]


def test_the_setting_counts_for_locks_that_run_already() -> None:
    bench = began(EARLIEST)
    bench.config = CONNECTED
    bench.leaders.reconfigure("g")
    bench.world.run(100_000)
    assert bench.take("n") == []
    bench.config = EARLIEST
    bench.leaders.reconfigure("g")
    bench.world.run(30_000)
    assert bench.take("n") == [(0, 9, 2)]
