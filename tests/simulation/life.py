"""One simulation of any world: it runs to its end, to the first broken promise, or for too long."""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

from tests.simulation.loop import Clock, SimulatedLoop
from tests.simulation.machine import drawn_chance
from tests.simulation.story import Story, Violation
from tests.simulation.swarm import Plan

from sharecore.client import consumer as consumers

_PATH_LENGTH = 200


@dataclass
class Outcome:
    """How a simulation ended."""

    plan: Plan
    violations: list[Violation]
    lines: list[str]
    digest: str
    events: int
    virtual_s: float


class Living(Protocol):
    """A world.

    Attributes:
        story: what happens in it.
        clock: the clock of its clients.
    """

    story: Story

    @property
    def clock(self) -> Clock: ...

    def run(self) -> Coroutine[Any, Any, None]:
        """The whole life."""


@contextmanager
def working_directory(parent: str | None = None) -> Iterator[Path]:
    """Create a temporary directory whose path is equally long wherever it is.

    An error message may name the path, and the length of an answer decides how the network splits it.
    """
    with tempfile.TemporaryDirectory(dir=parent) as root:
        path = Path(root, "d" * max(1, _PATH_LENGTH - len(root) - 1))
        path.mkdir()
        yield path


@contextmanager
def quiet(seed: int) -> Iterator[None]:
    """Nothing is logged or collected meanwhile, and whatever the process draws comes from the seed."""
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.disable()
    try:
        with drawn_chance(seed):
            yield
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)


def lived(
    plan: Plan,
    loop: SimulatedLoop,
    world: Living,
    patches: Iterable[AbstractContextManager[object]],
    *,
    events_after: int,
    close: Callable[[], None] = lambda: None,
) -> Outcome:
    """Runs a world to its end, or to the first violation.

    Args:
        patches: what is replaced while it runs.
        events_after: how many events may follow those of the plan.
        close: ends what the world has outside of the loop.
    """
    loop.set_exception_handler(lambda _, context: _unheard(world, context))
    asyncio.set_event_loop(loop)

    async def bounded() -> None:
        life = loop.create_task(world.run())
        try:
            while not life.done():
                await asyncio.wait([life], timeout=1.0)
                if loop.events > plan.events + events_after and not life.done():
                    world.story.broken("no end", "the simulation does not come to its end")
                    life.cancel()
            if not life.cancelled():
                life.result()
        finally:
            life.cancel()

    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        stack.enter_context(mock.patch.object(consumers, "SystemClock", return_value=world.clock))
        try:
            loop.run_until_complete(bounded())
        finally:
            digest, events, virtual_s = world.story.digest, loop.events, loop.now - 1000
            loop.set_exception_handler(lambda _, context: None)
            loop.bury(close)
            asyncio.set_event_loop(None)
    story = world.story
    return Outcome(plan, story.violations, list(story.lines), digest, events, virtual_s)


def _unheard(world: Living, context: dict[str, Any]) -> None:
    error = context.get("exception")
    for line in traceback.format_exception(error) if error is not None else ():
        world.story.tell("error", line.rstrip())
    world.story.broken("unheard error", f"{context.get('message')}: {type(error).__name__}: {error}")
