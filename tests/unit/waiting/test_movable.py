"""Time moved forward: due timers run in order, and the others keep the remaining time."""

from __future__ import annotations

import asyncio

import pytest
from tests.harness.aio import in_loop

from sharecore.clock import SystemClock
from sharecore.waiting import MovableTime


@in_loop
async def test_advancing_runs_due_timers_in_the_order_of_their_times() -> None:
    time = MovableTime(SystemClock(), asyncio.get_running_loop())
    ran: list[str] = []
    for seconds, name in ((300, "third"), (100, "first"), (200, "second"), (900, "not due")):
        time.call_later(seconds, lambda name=name: ran.append(name))  # type: ignore[misc]
    assert time.advance(300_000) == 3
    assert ran == [], "callbacks run from the event loop"
    await asyncio.sleep(0.02)
    assert ran == ["first", "second", "third"]
    assert time.advance(600_000) == 1
    await asyncio.sleep(0.02)
    assert ran[3:] == ["not due"]


@in_loop
async def test_both_clocks_move_together() -> None:
    time = MovableTime(SystemClock(), asyncio.get_running_loop())
    before = time.now_ms(), time.monotonic_ms()
    time.advance(60_000)
    after = time.now_ms(), time.monotonic_ms()
    assert all(60_000 <= late - early < 90_000 for early, late in zip(before, after, strict=True))


@in_loop
async def test_a_cancelled_timer_never_runs() -> None:
    time = MovableTime(SystemClock(), asyncio.get_running_loop())
    ran: list[str] = []
    time.call_later(100, lambda: ran.append("cancelled")).cancel()
    kept = time.call_later(100, lambda: ran.append("cancelled while due"))
    assert time.advance(100_000) == 1
    kept.cancel()
    await asyncio.sleep(0.02)
    assert ran == []


@in_loop
async def test_a_callback_counts_from_the_moved_time() -> None:
    time = MovableTime(SystemClock(), asyncio.get_running_loop())
    ran: list[str] = []

    def again() -> None:
        time.call_later(50, lambda: ran.append("later"))

    time.call_later(10, again)
    time.advance(10_000)
    await asyncio.sleep(0.02)
    assert (time.advance(49_000), time.advance(1_000)) == (0, 1)
    await asyncio.sleep(0.02)
    assert ran == ["later"]


@in_loop
async def test_timers_run_by_themselves() -> None:
    time = MovableTime(SystemClock(), asyncio.get_running_loop())
    done = asyncio.Event()
    time.call_later(0.01, done.set)
    await asyncio.wait_for(done.wait(), 10)


@in_loop
async def test_time_does_not_move_back() -> None:
    with pytest.raises(ValueError, match="back by 5 ms"):
        MovableTime(SystemClock(), asyncio.get_running_loop()).advance(-5)
