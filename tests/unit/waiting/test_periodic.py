from __future__ import annotations

import asyncio

import pytest

from sharecore.waiting import Periodic


def test_rounds_come_again_whatever_becomes_of_one(caplog: pytest.LogCaptureFixture) -> None:
    pauses: list[float] = []
    rounds = iter((None, RuntimeError("a bad round"), None))
    intervals = iter((1000, 2000, 3000, 4000))
    ended = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            ended.set()
            await asyncio.Event().wait()

    async def work() -> None:
        error = next(rounds)
        if error is not None:
            raise error

    async def run() -> None:
        periodic = Periodic(work, lambda: next(intervals), "the test", sleep)
        periodic.start()
        await ended.wait()
        periodic.stop()

    asyncio.run(run())
    assert pauses == [1, 2, 3, 4]
    assert "the test failed" in caplog.text
    assert "a bad round" in caplog.text


def test_work_that_never_began_may_be_stopped() -> None:
    async def work() -> None:
        raise AssertionError("nobody started it")

    Periodic(work, lambda: 1, "the test").stop()
