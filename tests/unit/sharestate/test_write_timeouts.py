"""Writes of share state that time out."""

from __future__ import annotations

from tests.unit.sharestate.test_share_coordinator import AVAILABLE, Bench, codes, content

from sharecore.errors import ErrorCode


def test_each_write_has_its_own_time() -> None:
    bench = Bench(hold=True)
    bench.initialize()
    bench.world.run(1_000)
    bench.logs[0].settle()
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    bench.world.run(2_000)
    bench.write(0, [(5, 9, AVAILABLE, 1)])
    bench.world.run(2_999)
    assert codes(bench) == [None]
    bench.world.run(1)
    assert codes(bench) == [None, ErrorCode.REQUEST_TIMED_OUT]
    bench.world.run(1_999)
    assert len(bench.ends) == 2
    bench.world.run(1)
    assert codes(bench) == [None, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT]


def test_a_write_that_takes_too_long_is_answered_once() -> None:
    """share.coordinator.write.timeout.ms"""
    bench = Bench(hold=True)
    bench.initialize()
    bench.logs[0].settle()
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    bench.world.run(5_000)
    assert codes(bench) == [None, ErrorCode.REQUEST_TIMED_OUT]
    bench.logs[0].settle()
    assert len(bench.ends) == 2
    assert content(bench.read()) == (0, 0, [(0, 4, AVAILABLE, 1)])


def test_all_that_wait_may_be_answered_before_their_time() -> None:
    bench = Bench(hold=True)
    bench.initialize()
    bench.logs[0].settle()
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    bench.write(0, [(5, 9, AVAILABLE, 1)])
    bench.coordinator.expire()
    assert codes(bench) == [None, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT]
    bench.logs[0].settle()
    bench.world.run(10_000)
    assert len(bench.ends) == 3
    bench.write(0, [(10, 14, AVAILABLE, 1)])
    bench.logs[0].settle()
    assert codes(bench)[3:] == [None]
