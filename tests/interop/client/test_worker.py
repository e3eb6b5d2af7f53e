"""Workers in this process."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from builtins import BaseExceptionGroup
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, produce
from tests.interop.client.conftest import ConsumerMaker
from tests.interop.client.receive import nothing_comes, values

from sharecore.admin import Admin
from sharecore.client import Record, Reject, Release, Retry, ShareConsumer, Worker, worker
from sharecore.client.workers import preparation
from sharecore.errors import ErrorCode, KafkaError

PATIENCE = 30.0


async def run(work: Worker, broker: Broker, group: str, done: asyncio.Event) -> None:
    """Run a worker until `done`."""
    running = asyncio.create_task(work.run(bootstrap_servers=broker.bootstrap, group_id=group))
    waiting = asyncio.create_task(done.wait())
    await asyncio.wait((running, waiting), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    assert done.is_set(), running
    work.stop()
    await running


@in_loop
async def test_handlers_run_side_by_side(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(40))
    done, seen = asyncio.Event(), []
    busy = most = 0

    @worker(topic, concurrency=8)
    async def handle(record: Record) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.05)
        busy -= 1
        seen.append(record.offset)
        if len(seen) == 40:
            done.set()

    await run(handle, broker, group, done)
    assert sorted(seen) == list(range(40))
    assert most == 8
    async with consumer() as successor:
        assert await nothing_comes(successor, 1)


@in_loop
async def test_a_handler_slower_than_the_lock(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    configure_group(broker.bootstrap, group, share_record_lock_duration_ms=2000)
    produce(broker.bootstrap, topic, values(3))
    done, started, seen = asyncio.Event(), asyncio.Event(), []
    places = threading.Semaphore(2)
    loop = asyncio.get_running_loop()

    @worker(topic, concurrency=3)
    def handle(record: Record) -> None:
        if not places.acquire(blocking=False):
            loop.call_soon_threadsafe(started.set)
        time.sleep(4)
        seen.append((record.offset, record.delivery_count))

    async with consumer() as other:
        working = asyncio.create_task(run(handle, broker, group, done))
        async with asyncio.timeout(PATIENCE):
            await started.wait()
        assert await nothing_comes(other, 5)
        done.set()
        await working
    assert sorted(seen) == [(0, 1), (1, 1), (2, 1)]


@in_loop
async def test_what_handlers_raise(broker: Broker, topic: str, group: str, consumer: ConsumerMaker) -> None:
    """A failed record is tried again in place; `Release` alone uses up a delivery."""
    produce(broker.bootstrap, topic, values(4))
    done = asyncio.Event()
    seen: Counter[tuple[int, int]] = Counter()
    at: defaultdict[int, list[float]] = defaultdict(list)

    @worker(topic, concurrency=2, retry=Retry(first_seconds=1))
    async def handle(record: Record) -> None:
        seen[record.offset, record.delivery_count] += 1
        at[record.offset].append(time.monotonic())
        if seen.total() == 6:
            asyncio.get_running_loop().call_later(1, done.set)
        if record.offset == 1:
            raise Reject("never")
        if record.offset == 2 and seen[2, 1] == 1:
            raise ValueError("once")
        if record.offset == 3 and record.delivery_count == 1:
            raise Release

    await run(handle, broker, group, done)
    assert seen == {(0, 1): 1, (1, 1): 1, (2, 1): 2, (3, 1): 1, (3, 2): 1}
    assert at[2][1] - at[2][0] >= 1
    assert handle.counts == {"accepted": 3, "rejected": 1, "failed": 1, "released": 1}
    async with consumer() as successor:
        assert await nothing_comes(successor, 1)


@in_loop
async def test_on_error_reject_and_undecodable_records(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, [b"1", b"{", b"0", b"2"])
    done, seen = asyncio.Event(), []

    @worker(topic, on_error="reject", value_deserializer=json.loads)
    async def handle(record: Record) -> None:
        seen.append(1 // record.value)
        if record.value == 2:
            done.set()

    await run(handle, broker, group, done)
    assert seen == [1, 0]
    async with consumer() as successor:
        assert await nothing_comes(successor, 1)


@in_loop
async def test_a_handler_that_does_not_end_is_cancelled(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(1))
    started = asyncio.Event()

    @worker(topic, drain_seconds=0.5)
    async def handle(record: Record) -> None:
        started.set()
        await asyncio.sleep(600)

    began = time.monotonic()
    await run(handle, broker, group, started)
    assert time.monotonic() - began < 15
    async with consumer() as successor:
        assert [record.delivery_count for record in await successor.poll(timeout=10)] == [2]


FAILURES = [
    StopIteration(),
    SystemExit(0),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    GeneratorExit(),
    BaseExceptionGroup("tasks", [SystemExit(1)]),
]


@in_loop
async def test_whatever_a_thread_raises_is_a_failure_of_its_job(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(len(FAILURES) + 1))
    done, seen = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    @worker(topic, on_error="reject")
    def handle(record: Record) -> None:
        seen.append((record.offset, record.delivery_count))
        if record.offset < len(FAILURES):
            raise FAILURES[record.offset]
        loop.call_soon_threadsafe(done.set)

    await run(handle, broker, group, done)
    assert seen == [(offset, 1) for offset in range(len(FAILURES) + 1)]
    assert handle.counts == {"given_up": len(FAILURES), "accepted": 1}


@in_loop
async def test_a_function_may_return_something_to_await_but_no_generator(
    broker: Broker, topic: str, group: str
) -> None:
    produce(broker.bootstrap, topic, values(3))
    done, ran = asyncio.Event(), []

    async def later(record: Record) -> None:
        await asyncio.sleep(0)
        ran.append(record.offset)

    def generate(record: Record) -> Iterator[None]:
        ran.append(record.offset)
        yield

    @worker(topic, on_error="reject")
    def handle(record: Record) -> object:
        if record.offset == 2:
            loop.call_soon_threadsafe(done.set)
        return later(record) if record.offset != 1 else generate(record)

    loop = asyncio.get_running_loop()
    await run(handle, broker, group, done)
    assert ran == [0, 2]
    assert handle.counts == {"accepted": 2, "given_up": 1}


@in_loop
async def test_a_thread_that_hangs_keeps_its_slot(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    """Nothing is taken that would wait behind it; others get the record whose lock may be renewed no more."""
    configure_group(broker.bootstrap, group, share_record_lock_duration_ms=1000)
    produce(broker.bootstrap, topic, [b"hangs", b"1", b"2"])
    hangs, freed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    seen = []

    @worker(topic, drain_seconds=0.1, lease_max_ms=1500, on_error="reject")
    def handle(record: Record) -> None:
        seen.append(record.offset)
        loop.call_soon_threadsafe(hangs.set)
        freed.wait(PATIENCE)

    working = asyncio.create_task(handle.run(bootstrap_servers=broker.bootstrap, group_id=group))
    try:
        async with asyncio.timeout(PATIENCE):
            await hangs.wait()
        async with consumer() as other:
            deliveries: dict[int, int] = {}
            while len(deliveries) < 3:
                for record in await other.poll(timeout=10):
                    deliveries[record.offset] = record.delivery_count
                    other.accept(record)
                await other.commit_sync()
        assert deliveries == {0: 2, 1: 1, 2: 1}
        assert seen == [0]
        handle.stop()
        await working
    finally:
        freed.set()


@in_loop
async def test_a_thread_past_its_time_out_gives_its_record_up(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(1))
    began, freed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @worker(topic, drain_seconds=0.1, handler_timeout=0.5)
    def handle(_: Record) -> None:
        loop.call_soon_threadsafe(began.set)
        freed.wait(PATIENCE)

    working = asyncio.create_task(handle.run(bootstrap_servers=broker.bootstrap, group_id=group))
    try:
        async with asyncio.timeout(PATIENCE):
            await began.wait()
        async with consumer() as other:
            assert [record.delivery_count for record in await other.poll(timeout=PATIENCE)] == [2]
        handle.stop()
        await working
    finally:
        freed.set()


@in_loop
async def test_a_coroutine_that_blocks_the_loop_loses_no_lock(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker, caplog: pytest.LogCaptureFixture
) -> None:
    configure_group(broker.bootstrap, group, share_record_lock_duration_ms=1000)
    produce(broker.bootstrap, topic, values(2))
    done, seen = asyncio.Event(), []

    @worker(topic)
    async def blocks(record: Record) -> None:
        time.sleep(3)  # noqa: ASYNC251 - the fault that is looked at
        seen.append((record.offset, record.delivery_count))
        if record.offset == 1:
            done.set()

    await run(blocks, broker, group, done)
    assert seen == [(0, 1), (1, 1)]
    assert blocks.counts == {"accepted": 2}
    lines = [record.getMessage() for record in caplog.records if "event loop blocked" in record.getMessage()]
    assert len(lines) == 1
    assert "blocks topic=" in lines[0]
    assert "test_worker.py" in lines[0]
    async with consumer() as successor:
        assert await nothing_comes(successor, 1)


@in_loop
async def test_a_new_group_starts_with_what_was_there_before(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, values(3))
    done, seen = asyncio.Event(), []

    @worker(topic)
    async def handle(record: Record) -> None:
        seen.append(record.offset)
        if len(seen) == 3:
            done.set()

    await run(handle, broker, f"new-{topic}", done)
    assert seen == [0, 1, 2]


@in_loop
async def test_topics_are_created_where_that_is_wanted(broker: Broker, topic: str, group: str) -> None:
    done = asyncio.Event()

    @worker([f"{topic}-a", f"{topic}-b"], create_topics=True, max_deliveries=3)
    async def handle(_: Record) -> None:
        done.set()

    working = asyncio.create_task(run(handle, broker, group, done))
    async with Admin(bootstrap_servers=broker.bootstrap) as admin, asyncio.timeout(PATIENCE):
        limit = "share.delivery.count.limit"
        while (await admin.configs(group, [limit]))[limit].value != "3":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await asyncio.to_thread(produce, broker.bootstrap, f"{topic}-b", values(1))
    await working


@in_loop
async def test_a_misspelt_topic_is_an_error_that_names_near_ones(
    broker: Broker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "_TOPIC_SECONDS", 0.1)
    handle = worker(topic.replace("topic", "tpoic"))(print)
    with pytest.raises(KafkaError, match=f"tpoic.* does not exist; did you mean .*{topic}") as raised:
        await handle.run(bootstrap_servers=broker.bootstrap, group_id=group)
    assert raised.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@in_loop
async def test_dead_letters_are_set_up_or_refused(broker: Broker, topic: str, group: str) -> None:
    """Apache Kafka before 4.4 writes none, and the worker says so."""
    produce(broker.bootstrap, topic, [b"never"])
    letters = f"dlq.{topic}"

    @worker(topic, dead_letters=letters, on_error="reject")
    async def handle(_: Record) -> None:
        raise ValueError("poison")

    working = asyncio.create_task(handle.run(bootstrap_servers=broker.bootstrap, group_id=group))
    if broker.kind == "apache":
        with pytest.raises(KafkaError, match="writes no dead letters"):
            await working
        return
    async with ShareConsumer(bootstrap_servers=broker.bootstrap, group_id=f"{group}-letters") as reader:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            await admin.alter_configs(f"{group}-letters", {"share.auto.offset.reset": "earliest"})
        reader.subscribe([letters])
        assert [record.value for record in await reader.poll(timeout=PATIENCE)] == [b"never"]
    handle.stop()
    await working
