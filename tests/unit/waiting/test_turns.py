"""Work split into turns of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Gather, Later, Steps, Turns

STEPS = 10


def work(steps: int, answer: Any = "done", took: list[int] | None = None) -> Steps[Any]:
    for each in range(steps):
        if took is not None:
            took.append(each)
        yield
    return answer


def test_work_of_few_steps_ends_at_once_without_a_loop() -> None:
    assert Turns(STEPS).run(work(STEPS - 1, {"is": "done"})) == {"is": "done"}


def test_an_error_of_few_steps_is_raised_at_once() -> None:
    def fail() -> Steps[None]:
        yield
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    with pytest.raises(KafkaError):
        Turns(STEPS).run(fail())


def test_long_work_takes_a_slice_a_turn_whoever_it_is_for() -> None:
    async def run() -> None:
        turns, took = Turns(STEPS), [list[int](), list[int]()]
        results = [turns.run(work(5 * STEPS, took=each)) for each in took]
        assert [len(each) for each in took] == [STEPS, STEPS], "what comes first ran at once"
        slices = []
        while not all(isinstance(each, Later) and each.done() for each in results):
            before = sum(map(len, took))
            await asyncio.sleep(0)
            slices.append(sum(map(len, took)) - before)
        assert max(slices) == STEPS
        assert [await each for each in results if isinstance(each, Later)] == ["done", "done"]

    asyncio.run(run())


def test_an_error_of_long_work_is_the_error_of_its_result() -> None:
    def fail() -> Steps[None]:
        yield from work(2 * STEPS)
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    async def run() -> None:
        result = Turns(STEPS).run(fail())
        assert isinstance(result, Later)
        with pytest.raises(KafkaError):
            await result

    asyncio.run(run())


def test_work_that_nobody_wants_any_more_ends() -> None:
    async def run() -> None:
        took: list[int] = []
        result = Turns(STEPS).run(work(10 * STEPS, took=took))
        assert isinstance(result, Later)
        await asyncio.sleep(0)
        result.cancel()
        done = len(took)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(took) == done < 10 * STEPS

    asyncio.run(run())


@pytest.mark.parametrize("steps", [1, 3 * STEPS])
def test_what_work_returns_may_come_later_itself(steps: int) -> None:
    async def run() -> None:
        inner: Later[str] = Later()
        result = Turns(STEPS).run(work(steps, inner))
        if steps > STEPS:
            assert isinstance(result, Later)
            assert result is not inner
        asyncio.get_running_loop().call_later(0.01, inner.set_result, "answer")
        assert isinstance(result, Later)
        assert await result == "answer"

    asyncio.run(run())


def test_a_client_that_goes_cancels_what_its_work_waits_for() -> None:
    async def run() -> None:
        inner: Later[str] = Later()
        result = Turns(STEPS).run(work(2 * STEPS, inner))
        assert isinstance(result, Later)
        for _ in range(10):
            await asyncio.sleep(0)
        result.cancel()
        assert inner.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize("steps", [1, 3 * STEPS])
def test_work_begins_once_all_operations_have_ended(steps: int) -> None:
    async def run() -> None:
        ends: list[Callable[..., object]] = []
        gather: Gather[str] = Gather()
        gather.run("a", ends.append)
        result = Turns(STEPS).after(gather, lambda: work(steps, gather.outcomes))
        assert isinstance(result, Later)
        assert not result.done()
        ends[0]("ended")
        assert await result == {"a": "ended"}
        assert Turns(STEPS).after(Gather(), lambda: work(1, {"at": "once"})) == {"at": "once"}

    asyncio.run(run())


def test_a_coroutine_pauses_after_so_many_steps() -> None:
    async def run() -> None:
        turns, steps = Turns(STEPS), 0

        async def count() -> None:
            nonlocal steps
            pace = turns.pace()
            for _ in range(3 * STEPS):
                steps += 1
                await pace.step()

        task = asyncio.create_task(count())
        await asyncio.sleep(0)
        assert steps == STEPS
        await task
        assert steps == 3 * STEPS

    asyncio.run(run())


def test_a_coroutine_has_work_run_to_its_end() -> None:
    async def run() -> None:
        turns = Turns(STEPS)
        assert await turns.finish(work(1, 1)) == 1
        assert await turns.finish(work(5 * STEPS, 2)) == 2

    asyncio.run(run())
