"""What the simulator's loop keeps of asyncio's order, and what it draws."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from typing import Any
from unittest import mock

from tests.simulation.loop import Process, SimulatedLoop

SEEDS = range(60)


def run(seed: int, life: Callable[[SimulatedLoop], Coroutine[Any, Any, list[str]]]) -> list[str]:
    loop = SimulatedLoop(seed)
    try:
        return loop.run_until_complete(life(loop))
    finally:
        loop.close()


def test_callbacks_of_one_process_keep_their_order_and_those_of_two_have_none() -> None:
    async def life(loop: SimulatedLoop) -> list[str]:
        said: list[str] = []
        left, right = Process("left"), Process("right")
        for number in range(4):
            for process in (left, right):
                loop.call_soon(said.append, f"{process.name}-{number}", context=process.context)
        await asyncio.sleep(1.0)
        return said

    orders = [run(seed, life) for seed in SEEDS]
    for said in orders:
        for name in ("left", "right"):
            assert [each for each in said if each.startswith(name)] == [f"{name}-{i}" for i in range(4)]
    assert len({tuple(said) for said in orders}) > 20
    assert orders == [run(seed, life) for seed in SEEDS]


def test_what_is_due_at_once_comes_in_any_order_and_nothing_early() -> None:
    async def life(loop: SimulatedLoop) -> list[str]:
        said: list[str] = []

        def due(name: str, at: float) -> None:
            assert loop.now >= at
            said.append(name)

        now = loop.now
        for name, at in (("a", now + 1.0), ("b", now + 1.0), ("c", now + 1.0001), ("late", now + 2.0)):
            loop.call_at(at, due, name, at)
        await asyncio.sleep(3.0)
        return said

    orders = {tuple(run(seed, life)) for seed in SEEDS}
    assert {("a", "b", "c", "late"), ("b", "a", "c", "late"), ("c", "a", "b", "late")} <= orders
    assert all(said[-1] == "late" for said in orders)


def test_a_process_that_stands_still_goes_on_where_it_was() -> None:
    async def life(loop: SimulatedLoop) -> list[str]:
        said: list[str] = []
        process = Process("broker")
        began = loop.now

        def say(what: str) -> None:
            said.append(f"{what} after {round(loop.now - began, 1)} s")

        loop.pause(process)
        loop.call_later(0.5, loop.go_on, process)
        loop.call_later(0.1, say, "timer", context=process.context)
        for what in ("first", "second"):
            loop.call_soon(say, what, context=process.context)
        loop.call_soon(say, "another")
        await asyncio.sleep(1.0)
        return said

    for seed in SEEDS:
        assert run(seed, life) == [
            "another after 0.0 s",
            "first after 0.5 s",
            "second after 0.5 s",
            "timer after 0.5 s",
        ]


def test_what_has_begun_in_the_last_turn_leaves_no_coroutine_behind() -> None:
    loop = SimulatedLoop(1)

    async def handle() -> None:
        await asyncio.sleep(0)

    def again() -> None:
        loop.create_task(handle())
        loop.call_soon(again)

    again()
    gc.collect()  # what other tests left behind would be told here
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with mock.patch("tests.simulation.loop._FAREWELL_S", 0.01):
            loop.bury(lambda: None)
        loop = None  # type: ignore[assignment]
        gc.collect()
    assert [str(each.message) for each in told] == []


def test_a_task_whose_future_came_after_its_process_had_died_ends_in_the_loop() -> None:
    loop = SimulatedLoop(1)
    said: list[str] = []
    process = Process("broker")

    async def lives(future: asyncio.Future[None]) -> None:
        try:
            await future
        finally:
            # a start that is undone needs its loop
            asyncio.get_running_loop()
            said.append("ended")

    async def life() -> None:
        future = loop.create_future()
        loop.create_task(lives(future), context=process.context)
        await asyncio.sleep(0.1)
        future.set_result(None)
        loop.end(process)
        await asyncio.sleep(0.1)
        assert said == []

    loop.processes.append(process)
    loop.run_until_complete(life())
    with mock.patch("tests.simulation.loop._FAREWELL_S", 0.01):
        loop.bury(lambda: None)
    assert said == ["ended"]
