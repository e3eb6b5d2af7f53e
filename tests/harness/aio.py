"""Tests that are coroutines."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

TestBody = Callable[..., Awaitable[None]]


def in_loop(body: TestBody) -> Callable[..., None]:
    """Run a coroutine in a loop of its own; fail where a task is left over or an error went unheard."""

    @functools.wraps(body)
    def test(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(_checked(body(*arguments, **fixtures)))

    return test


async def settled(done: Callable[[], bool]) -> None:
    """Wait until something holds that no event tells; the test's own timeout ends it."""
    while not done():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.005)


async def _checked(work: Awaitable[None]) -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    await work
    # a cancelled task needs a round of the loop to notice
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert left == set()
    assert unheard == []
