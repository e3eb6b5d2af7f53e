"""Workers in virtual time: how many at once, how they back off, and how they end."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.scripted import LOCK_MS, ScriptedBroker
from tests.unit.client.virtual import LoopClock, in_virtual_time

from sharecore.client import Backoff, Record, Worker, worker
from sharecore.client import consumer as consumers


@pytest.fixture(autouse=True)
def virtual_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker makes its consumer itself."""
    monkeypatch.setattr(consumers, "SystemClock", lambda: LoopClock(asyncio.get_running_loop()))


def start(work: Worker) -> asyncio.Task[None]:
    return asyncio.ensure_future(work.run(bootstrap_servers="broker:9092", group_id="group"))


@in_virtual_time
async def test_never_more_at_once_than_is_allowed_and_locks_are_kept() -> None:
    broker = ScriptedBroker()
    for offset in range(12):
        broker.offer(offset, offset)
    busy = most = 0
    done: list[int] = []
    all_done = asyncio.Event()

    @worker("topic", concurrency=3)
    async def handle(record: Record) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(2 * LOCK_MS / 1000)
        busy -= 1
        done.append(record.offset)
        if len(done) == 12:
            all_done.set()

    running = start(handle)
    began = broker.loop.time()
    async with asyncio.timeout(1_000):
        await all_done.wait()
    handle.stop()
    await running
    assert most == 3
    assert 240 <= broker.loop.time() - began < 260
    assert sorted(span[:2] for span in broker.acknowledged if span[2] == b"\1") == [
        (offset, offset) for offset in range(12)
    ]
    # a renewal carries nothing else
    assert {types for _, _, types in broker.acknowledged} == {b"\1", b"\4"}


@in_virtual_time
async def test_a_record_that_failed_is_kept_for_its_back_off() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0, 3)
    failed: list[float] = []

    @worker("topic", backoff=Backoff(first_ms=1_000, factor=2))
    async def handle(_: Record) -> None:
        failed.append(broker.loop.time())
        raise ValueError

    running = start(handle)
    await asyncio.sleep(3.9)
    assert broker.acknowledged == []
    # the third delivery waits four times as long as the first
    await asyncio.sleep(0.3)
    assert broker.acknowledged == [(0, 0, b"\2")]
    assert len(failed) == 1
    handle.stop()
    await running


@pytest.mark.parametrize(("drain_seconds", "outcome"), [(20.0, b"\1"), (2.0, b"\2")])
def test_stopping_lets_handlers_end_and_cancels_those_that_do_not(
    drain_seconds: float, outcome: bytes
) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 0)
        started = asyncio.Event()

        @worker("topic", drain_seconds=drain_seconds)
        async def handle(_: Record) -> None:
            started.set()
            await asyncio.sleep(10)

        running = start(handle)
        await started.wait()
        began = broker.loop.time()
        handle.stop()
        await running
        assert broker.loop.time() - began == pytest.approx(min(drain_seconds, 10), abs=0.2)
        assert broker.acknowledged == [(0, 0, outcome)]

    body()
