"""Blocking work, beside the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sharecore.waiting import Blocked, BlockingWork


def test_work_runs_beside_the_loop() -> None:
    async def run() -> None:
        here = threading.get_ident()
        assert await BlockingWork("test").run(threading.get_ident, 10) != here
        with pytest.raises(ZeroDivisionError):
            await BlockingWork("test").run(lambda: 1 / 0, 10)

    asyncio.run(run())


def test_what_is_stuck_is_given_up_and_bounded() -> None:
    async def run() -> None:
        work, release = BlockingWork("test", at_once_max=2), threading.Event()
        try:
            for _ in range(2):
                with pytest.raises(Blocked, match=r"timed out"):
                    await work.run(release.wait, 0.01)
            with pytest.raises(Blocked, match=r"stuck"):
                await work.run(lambda: None, 10)
        finally:
            release.set()
        for _ in range(1000):  # the threads end
            if work.running:
                await asyncio.sleep(0.01)
        assert await work.run(lambda: "again", 10) == "again"

    asyncio.run(run())
