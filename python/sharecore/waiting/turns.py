"""Long work, split over turns of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

from sharecore.errors import KafkaError
from sharecore.waiting.later import Gather, Later, outcome

Answer = TypeVar("Answer")
Name = TypeVar("Name")
Steps = Generator[None, None, Answer]
"""Work that yields after each step and returns its result."""
Begun: TypeAlias = Answer | Later[Answer]
"""The result of work, or where it will be once the work has ended."""
Unfinished: TypeAlias = Callable[[Later[object]], object] | None
"""Called with the `Later` of work for which one slice is not enough."""

_STEPS_A_TURN = 256


class Turns:
    """Run long work in slices of one event-loop turn, shared by all requests.

    A request may name 100,000 partitions. Others are served between two slices, so that nobody waits longer
    than a slice. Slices count steps, not time, so that the same request always takes the same turns.
    """

    def __init__(self, steps_a_turn: int = _STEPS_A_TURN) -> None:
        self._steps_a_turn = steps_a_turn
        self._waiting: deque[Callable[[], object]] = deque()

    def run(self, steps: Steps[Begun[Answer]], unfinished: Unfinished = None) -> Begun[Answer]:
        """Start the work of a request; return the answer, or a `Later` if one slice is not enough.

        A `Later` returned by the work is awaited. Cancelling the answer ends the work.

        Args:
            steps: the work.
            unfinished: called with the `Later` if one slice is not enough.
        """
        ended: list[Begun[Answer]] = []
        work = _collecting(steps, ended)
        if self._run_slice(work, ended):
            return ended[0]
        later: Later[Answer] = Later()
        if unfinished is not None:
            unfinished(later)
        self._wait_for_turn(lambda: self._go_on(later, work, ended))
        return later

    def after(self, gather: Gather[Name], steps: Callable[[], Steps[Answer]]) -> Begun[Answer]:
        """Start the work of a request once all operations have ended; return as `run` does."""
        if not gather.pending:
            return self.run(steps())
        later: Later[Answer] = Later()

        def begin() -> None:
            ended: list[Begun[Answer]] = []
            self._go_on(later, _collecting(steps(), ended), ended)

        gather.when_ended(begin)
        return later

    async def finish(self, steps: Steps[Answer], unfinished: Unfinished = None) -> Answer:
        """Run work to its end and return its result; the arguments are those of `run`."""
        result: Begun[Answer] = self.run(steps, unfinished)
        return await outcome(result) if isinstance(result, Later) else result

    def pace(self) -> Pace:
        """Return a `Pace`, whose `step` a coroutine awaits after each of its steps."""
        return Pace(self, self._steps_a_turn)

    async def pause(self) -> None:
        """Wait for this work's next turn."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wait_for_turn(lambda: None if future.done() else future.set_result(None))
        await future

    def _run_slice(self, work: Steps[None], ended: Sequence[object]) -> bool:
        deque(islice(work, self._steps_a_turn), 0)
        return bool(ended)

    def _go_on(self, later: Later[Answer], work: Steps[None], ended: Sequence[Begun[Answer]]) -> None:
        if later.done():
            work.close()
            return
        try:
            has_ended = self._run_slice(work, ended)
        except Exception as error:  # fail the request, not the turns of the others
            # a refusal needs no traceback: it would hold `later`, and thus the work's results, in a cycle
            later.set_exception(error.with_traceback(None) if isinstance(error, KafkaError) else error)
            return
        if not has_ended:
            self._wait_for_turn(lambda: self._go_on(later, work, ended))
        elif isinstance(ended[0], Later):
            _follow(later, ended[0])
        else:
            later.set_result(ended[0])

    def _wait_for_turn(self, go_on: Callable[[], object]) -> None:
        self._waiting.append(go_on)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        go_on = self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next_turn)
        go_on()


class Pace:
    """Yield the event loop after a number of a coroutine's steps."""

    __slots__ = ("_left", "_steps_a_turn", "_turns")

    def __init__(self, turns: Turns, steps_a_turn: int) -> None:
        self._turns = turns
        self._steps_a_turn = self._left = steps_a_turn

    async def step(self) -> None:
        """Wait for the next turn if this turn's steps are used up."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._steps_a_turn
            await self._turns.pause()


def exhaust(steps: Steps[Answer]) -> Answer:
    """Run work to its end at once and return its result."""
    ended: list[Answer] = []
    deque(_collecting(steps, ended), 0)
    return ended[0]


def _collecting(steps: Steps[Answer], ended: list[Answer]) -> Steps[None]:
    ended.append((yield from steps))


def _follow(later: Later[Answer], other: Later[Answer]) -> None:
    """Complete a result as another one completes; cancelling it cancels the other."""

    def ended(_: object) -> None:
        if other.cancelled():
            later.cancel()
        elif (error := other.exception()) is not None:
            later.set_exception(error)
        else:
            later.set_result(other.result())

    later.add_done_callback(lambda _: other.cancel())
    other.add_done_callback(ended)
