"""A run in virtual time: concurrency, retries, and logging."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from tests.unit.client.scripted import LOCK_MS, ScriptedBroker, acknowledged
from tests.unit.client.virtual import in_virtual_time
from tests.unit.client.workers.harness import Events, running, until

from sharecore.client import Backoff, Record, Retry, worker
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

pytestmark = pytest.mark.usefixtures("virtual_clock", "events")


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

    began = broker.loop.time()
    async with running(handle), asyncio.timeout(1_000):
        await all_done.wait()
    assert most == 3
    assert 240 <= broker.loop.time() - began < 260
    assert sorted(span[:2] for span in broker.acknowledged if span[2] == b"\1") == [
        (offset, offset) for offset in range(12)
    ]
    # a renewal is sent alone
    assert {types for _, _, types in broker.acknowledged} == {b"\1", b"\4"}
    assert handle.counts == {"accepted": 12}


@pytest.mark.heavy
@in_virtual_time
async def test_an_outage_of_15_minutes_uses_up_no_delivery(events: Events) -> None:
    """All defaults: failed jobs are retried, and done within a minute after the outage."""
    broker = ScriptedBroker()
    broker.empty_wait_s = 2  # fewer requests make the test faster
    for offset in range(60):
        broker.offer(offset, offset)
    until = broker.loop.time() + 900
    calls: Counter[int] = Counter()
    done: dict[int, float] = {}

    @worker("topic")
    async def handle(record: Record) -> None:
        calls[record.offset] += 1
        assert record.delivery_count == 1
        if broker.loop.time() < until:
            raise ConnectionError("the database is away")
        await asyncio.sleep(0.05)
        done[record.offset] = broker.loop.time()

    async with running(handle):
        await asyncio.sleep(960)
        assert sorted(done) == list(range(60))
    assert max(done.values()) < until + 60
    settled = [types for _, _, types in broker.acknowledged if types != b"\4"]
    assert settled == [b"\1"] * 60
    # about one call in 20 s for each job
    assert 40 <= min(calls.values()) <= max(calls.values()) <= 60
    # each failure is logged, with one traceback per job
    assert len(events.of("failed")) == sum(calls.values()) - 60
    assert sum(events.traced("failed")) == 60


@in_virtual_time
async def test_waiting_jobs_take_no_slot_and_are_bounded() -> None:
    broker = ScriptedBroker()
    for offset in range(100):
        broker.offer(offset, offset)
    tried: set[int] = set()

    @worker("topic", concurrency=2, retry=Retry(first_seconds=60, max_seconds=60, max_waiting=20))
    async def handle(record: Record) -> None:
        tried.add(record.offset)
        raise ValueError

    async with running(handle):
        await asyncio.sleep(50)
        assert 20 <= len(tried) <= 22
        fetches = len(broker.bodies(ApiKey.SHARE_FETCH))
        await asyncio.sleep(5)
        assert len(broker.bodies(ApiKey.SHARE_FETCH)) == fetches


@in_virtual_time
async def test_back_off_grows_and_its_jitter_only_lengthens_it() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    at: list[float] = []

    @worker("topic", retry=Retry(first_seconds=1, factor=2, max_seconds=5, jitter=0.5))
    async def handle(_: Record) -> None:
        at.append(broker.loop.time())
        raise ValueError

    async with running(handle):
        await asyncio.sleep(40)
    waits = [after - before for before, after in pairwise(at)]
    for wait, least in zip(waits, [1, 2, 4, 5, 5, 5], strict=False):
        assert least <= wait <= 1.5 * least + 0.001
    assert len(set(waits)) > 3


@in_virtual_time
async def test_backoff_in_milliseconds_names_the_same_waits() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    at: list[float] = []

    @worker("topic", backoff=Backoff(first_ms=3_000, factor=2))
    async def handle(_: Record) -> None:
        at.append(broker.loop.time())
        raise ValueError

    async with running(handle):
        await asyncio.sleep(12)
    assert 3 <= at[1] - at[0] <= 3.6
    assert 6 <= at[2] - at[1] <= 7.2


@pytest.mark.heavy
@in_virtual_time
async def test_a_poison_job_slows_nobody_and_ends_with_one_line(events: Events) -> None:
    """The broker redelivers the released record, up to its limit."""
    broker = ScriptedBroker()
    broker.offer(0, 0)
    for offset in range(1, 400):
        broker.offer(offset, offset)
    done: list[int] = []
    finished = asyncio.Event()

    @worker("topic", concurrency=4, retry=Retry(give_up_seconds=30))
    async def handle(record: Record) -> None:
        await asyncio.sleep(0.1)
        if record.offset == 0:
            raise ValueError("poison")
        done.append(record.offset)
        if len(done) == 399:
            finished.set()

    def released() -> int:
        return sum(span == (0, 0, b"\2") for span in broker.acknowledged)

    async with running(handle):
        began = broker.loop.time()
        await finished.wait()
        # 399 jobs of 0.1 s, four at once: 10 s without the poison job
        assert broker.loop.time() - began < 11
        for deliveries in range(2, 6):
            await until(lambda: released() >= deliveries - 1)  # noqa: B023 - it waits here
            broker.offer(0, 0, deliveries)
        await until(lambda: released() == 5)
        await asyncio.sleep(1)
    (line,) = events.of("given up")
    assert events.levels_of("given up") == {logging.ERROR}
    assert events.traced("given up") == [True]
    assert (line["topic"], line["partition"], line["offset"], line["key"]) == ("topic", 0, 0, None)
    assert line["deliveries"] == 5
    assert line["error"] == "ValueError: poison"
    assert [record for record in events.records if record.levelno >= logging.ERROR] == [
        record for record in events.records if vars(record)["fields"] == line
    ]
    assert handle.counts["given_up"] == 1
    assert handle.counts["accepted"] == 399


@in_virtual_time
async def test_a_job_that_fills_the_window_ends_early_while_others_succeed(events: Events) -> None:
    broker = ScriptedBroker()
    broker.group_configs["share.partition.max.record.locks"] = ("100", 5)
    for offset in range(120):
        broker.offer(offset, offset)

    @worker("topic")
    async def handle(record: Record) -> None:
        await asyncio.sleep(0.05)
        if record.offset == 0:
            raise ValueError("poison")

    async with running(handle):
        await asyncio.sleep(5)
        assert events.of("released")[0]["offset"] == 0
        # half of the window, checked four times a second
        assert sum(span[2] == b"\1" for span in broker.acknowledged) >= 50


@in_virtual_time
async def test_no_job_ends_early_while_the_others_fail_too(events: Events) -> None:
    broker = ScriptedBroker()
    broker.group_configs["share.partition.max.record.locks"] = ("100", 5)
    for offset in range(120):
        broker.offer(offset, offset)

    @worker("topic")
    async def handle(record: Record) -> None:
        await asyncio.sleep(0.05)
        if record.offset % 5 == 0:
            raise ConnectionError("one in five")

    async with running(handle):
        await asyncio.sleep(30)
        assert events.of("released") == []


@in_virtual_time
async def test_accepted_is_said_when_the_broker_has_confirmed_it(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    broker.says[ApiKey.SHARE_ACKNOWLEDGE].append(5.0)

    @worker("topic")
    async def handle(_: Record) -> None:
        await asyncio.sleep(0)

    async with running(handle):
        await until(lambda: bool(broker.bodies(ApiKey.SHARE_ACKNOWLEDGE)))
        await asyncio.sleep(4)
        assert (events.of("accepted"), handle.counts["accepted"]) == ([], 0)
        await asyncio.sleep(2)
        assert (len(events.of("accepted")), handle.counts["accepted"]) == (1, 1)


@in_virtual_time
async def test_what_the_broker_refuses_is_not_accepted(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    refused = acknowledged([{"partition_index": 0, "error_code": ErrorCode.INVALID_RECORD_STATE}])
    broker.says[ApiKey.SHARE_ACKNOWLEDGE].append(refused)

    @worker("topic")
    async def handle(_: Record) -> None:
        await asyncio.sleep(0)

    async with running(handle):
        await asyncio.sleep(3)
        assert events.of("accepted") == []
        assert events.of("lost")[0]["outcome"] == "accept"
    assert handle.counts == {"lost": 1}


@in_virtual_time
async def test_a_deserializer_fails_as_a_handler_does() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 1)
    tries: defaultdict[bytes, int] = defaultdict(int)
    done = []

    def fails_twice(value: bytes) -> str:
        tries[value] += 1
        if tries[value] < 3:
            raise ValueError("schema registry is away")
        return value.decode()

    @worker("topic", value_deserializer=fails_twice)
    async def handle(record: Record) -> None:
        done.append(record.value)

    async with running(handle):
        await asyncio.sleep(10)
    assert len(done) == 2
    assert all(isinstance(value, str) for value in done)
    assert {types for _, _, types in broker.acknowledged} <= {b"\1", b"\1\1", b"\4"}


@in_virtual_time
async def test_a_coroutine_that_takes_too_long_has_failed(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)

    @worker("topic", handler_timeout=3, on_error="reject")
    async def handle(_: Record) -> None:
        await asyncio.sleep(600)

    async with running(handle):
        await asyncio.sleep(4)
        assert broker.acknowledged == [(0, 0, b"\3")]
        assert events.of("given up")[0]["error"] == "TimeoutError: handler_timeout=3 s has passed"


@in_virtual_time
async def test_a_handler_that_runs_for_minutes_is_named_every_minute(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)

    @worker("topic")
    async def slow(_: Record) -> None:
        await asyncio.sleep(200)

    async with running(slow):
        await asyncio.sleep(190)
        lines = events.of("still running")
        assert [line["seconds"] for line in lines] == [60, 120, 180]
        assert {(line["worker"].rpartition(".")[2], line["offset"]) for line in lines} == {("slow", 0)}
