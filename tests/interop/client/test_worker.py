"""Workers, in this process and as a command."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.harness.aio import in_loop
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import configure_group, produce
from tests.interop.client.conftest import ConsumerMaker
from tests.interop.client.receive import nothing_comes, values

from sharecore.client import Backoff, Record, Reject, Release, Worker, worker
from sharecore.errors import ConfigError

PATIENCE = 30.0


async def run(work: Worker, broker: Broker, group: str, done: asyncio.Event) -> None:
    """Runs a worker until `done`."""
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
    async with consumer() as heir:
        assert await nothing_comes(heir, 1)


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
    produce(broker.bootstrap, topic, values(4))
    done = asyncio.Event()
    seen: Counter[int] = Counter()
    at: dict[tuple[int, int], float] = {}

    @worker(topic, concurrency=2, backoff=Backoff(first_ms=1000))
    async def handle(record: Record) -> None:
        seen[record.offset] += 1
        at[record.offset, record.delivery_count] = time.monotonic()
        if seen.total() == 6:
            asyncio.get_running_loop().call_later(1, done.set)
        if record.offset == 1:
            raise Reject("never")
        if record.offset == 2 and record.delivery_count == 1:
            raise ValueError("once")
        if record.offset == 3 and record.delivery_count == 1:
            raise Release

    await run(handle, broker, group, done)
    assert seen == {0: 1, 1: 1, 2: 2, 3: 2}
    assert at[2, 2] - at[2, 1] >= 1
    assert at[3, 2] - at[3, 1] < 0.9
    async with consumer() as heir:
        assert await nothing_comes(heir, 1)


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
    async with consumer() as heir:
        assert await nothing_comes(heir, 1)


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
    async with consumer() as heir:
        assert [record.delivery_count for record in await heir.poll(timeout=10)] == [2]


def test_a_worker_is_checked_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="concurrency=0"):
        worker("topic", concurrency=0)
    with pytest.raises(ConfigError, match="on_error='drop'"):
        worker("topic", on_error="drop")
    with pytest.raises(ConfigError, match="needs a topic"):
        worker([])


PROGRAM = """
import asyncio
from sharecore.client import worker

@worker({topic!r}, concurrency=2)
async def handle(record):
    print("began", record.offset, flush=True)
    await asyncio.sleep(2)
    print("ended", record.offset, flush=True)
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_the_command(broker: Broker, topic: str, group: str, tmp_path: Path, signals: int) -> None:
    produce(broker.bootstrap, topic, values(6))
    (tmp_path / "jobs.py").write_text(PROGRAM.format(topic=topic))
    command = [SHARECORE, "work", "jobs:handle", "--group", group, "-b", broker.bootstrap]
    process = subprocess.Popen(
        [*command, "--log-format", "json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["began 0\n", "began 1\n"]
    for _ in range(signals):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    out, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    events = Counter(json.loads(line).get("event") for line in log.splitlines())
    if signals == 1:
        assert out == "ended 0\nended 1\n"
        assert events["accepted"] == 2
    else:
        assert out == ""
        assert events["accepted"] == 0
    assert events["started"] == events["stopped"] == 1
