"""The end of a run, and of a lock, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.unit.client.scripted import LOCK_MS, ScriptedBroker
from tests.unit.client.virtual import in_virtual_time
from tests.unit.client.workers.harness import Events, running

from sharecore.client import Record, Retry, worker

pytestmark = pytest.mark.usefixtures("virtual_clock", "events")


@pytest.mark.parametrize(("drain_seconds", "outcome"), [(20.0, b"\1"), (2.0, b"\2"), (None, b"\1")])
def test_stopping_lets_handlers_end_and_cancels_those_that_do_not(
    drain_seconds: float | None, outcome: bytes
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

        async with running(handle):
            await started.wait()
            began = broker.loop.time()
        assert broker.loop.time() - began == pytest.approx(min(drain_seconds or 45, 10), abs=0.2)
        assert broker.acknowledged == [(0, 0, outcome)]

    body()


@in_virtual_time
async def test_a_drain_lasts_longer_than_a_lock_renews_and_says_so(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    started = asyncio.Event()

    @worker("topic")
    async def handle(_: Record) -> None:
        started.set()
        await asyncio.sleep(1.4 * LOCK_MS / 1000)

    async with running(handle):
        await started.wait()
    assert events.of("draining")[0]["drain_seconds"] == 1.5 * LOCK_MS / 1000
    assert [types for _, _, types in broker.acknowledged][-1] == b"\1"
    assert b"\4" in [types for _, _, types in broker.acknowledged]


@in_virtual_time
async def test_stopping_releases_at_once_what_waits() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 1)
    broker.offer(2, 2, 5)
    began: list[tuple[int, float]] = []

    @worker("topic", concurrency=3, retry=Retry(first_seconds=60, max_seconds=60))
    async def handle(record: Record) -> None:
        began.append((record.offset, broker.loop.time()))
        if record.offset == 0:
            await asyncio.sleep(20)
        elif len(began) < 4:
            raise ValueError

    async with running(handle):
        await asyncio.sleep(2)
        stopped = broker.loop.time()
        handle.stop()
        await asyncio.sleep(0.5)
        assert (1, 1, b"\2") in broker.acknowledged
        # a release would archive the record, which is at its delivery limit: it is tried once more
        assert began[-1][0] == 2
        assert began[-1][1] == pytest.approx(stopped, abs=0.2)
        assert (2, 2, b"\1") in broker.acknowledged
    assert (0, 0, b"\1") in broker.acknowledged


@in_virtual_time
async def test_a_lost_lock_cancels_its_handler_and_drops_its_retry(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 1)
    calls: Counter[int] = Counter()
    cancelled = []

    @worker("topic", concurrency=2, retry=Retry(first_seconds=5, max_seconds=5))
    async def handle(record: Record) -> None:
        calls[record.offset] += 1
        if record.offset == 0:
            raise ValueError
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cancelled.append(record.offset)
            raise

    async with running(handle):
        await asyncio.sleep(2)
        for link in list(broker.links):
            link.cut()
        await asyncio.sleep(20)
        assert sorted(line["offset"] for line in events.of("lost")) == [0, 1]
        assert cancelled == [1]
        assert calls == {0: 1, 1: 1}
