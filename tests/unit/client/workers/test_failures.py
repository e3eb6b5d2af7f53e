"""Exceptions of a handler, in virtual time: each only fails its job."""

from __future__ import annotations

import asyncio
from builtins import BaseExceptionGroup, ExceptionGroup

import pytest
from tests.unit.client.scripted import ScriptedBroker
from tests.unit.client.virtual import in_virtual_time
from tests.unit.client.workers.harness import Events, running

from sharecore.client import Record, Reject, Release, worker

pytestmark = pytest.mark.usefixtures("virtual_clock", "events")


@pytest.mark.parametrize(
    ("raised", "types", "event"),
    [
        (Reject("never"), b"\3", "rejected"),
        (ExceptionGroup("tasks", [ValueError(), Reject("never")]), b"\3", "rejected"),
        (BaseExceptionGroup("tasks", [SystemExit(1), Reject("never")]), b"\3", "rejected"),
        (ExceptionGroup("outer", [ExceptionGroup("inner", [Release()])]), b"\2", "released"),
        (Release("another one"), b"\2", "released"),
    ],
)
def test_reject_and_release_count_wherever_they_are(
    raised: BaseException,
    types: bytes,
    event: str,
    events: Events,
) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 0)

        @worker("topic")
        async def handle(_: Record) -> None:
            raise raised

        async with running(handle):
            await asyncio.sleep(1)
            assert broker.acknowledged == [(0, 0, types)]
            assert len(events.of(event)) == 1

    body()


class Unspeakable(Exception):
    """An exception whose text raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


FAILURES = [
    ValueError("plain"),
    StopIteration(),
    StopAsyncIteration(),
    GeneratorExit(),
    SystemExit(0),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    TimeoutError(),
    BaseException("bare"),
    Unspeakable(),
    ExceptionGroup("tasks", [ValueError()]),
    BaseExceptionGroup("tasks", [asyncio.CancelledError()]),
]


@pytest.mark.parametrize("raised", FAILURES, ids=lambda raised: type(raised).__name__)
@pytest.mark.parametrize("on_error", ["release", "reject"])
def test_whatever_a_coroutine_raises_is_a_failure_of_its_job(
    raised: BaseException,
    on_error: str,
    events: Events,
) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 1)
        done = []

        @worker("topic", on_error=on_error)
        async def handle(record: Record) -> None:
            await asyncio.sleep(0)
            if record.offset == 0:
                raise raised
            done.append(record.offset)

        async with running(handle):
            await asyncio.sleep(0.9)
            assert done == [1]
            event = "failed" if on_error == "release" else "given up"
            assert events.traced(event) == [True]
            rejected = [(0, 0, b"\3")] if on_error == "reject" else []
            assert [span for span in broker.acknowledged if span[2] != b"\1"] == rejected

    body()


@in_virtual_time
async def test_a_handler_that_cancels_its_own_task_has_failed(events: Events) -> None:
    broker = ScriptedBroker()
    broker.offer(0, 1)
    done = []

    @worker("topic", on_error="reject")
    async def handle(record: Record) -> None:
        task = asyncio.current_task()
        assert task is not None
        if record.offset == 0:
            task.cancel()
        await asyncio.sleep(0.1)
        done.append(record.offset)

    async with running(handle):
        await asyncio.sleep(1)
        assert done == [1]
        assert events.of("given up")[0]["error"] == "CancelledError"
