"""Answers that are not known yet, and their callbacks, which cost less than tasks and futures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Protocol, TypeVar

from sharecore._core import Gather, Later, settle
from sharecore.errors import KafkaError

__all__ = ["Done", "Gather", "Later", "awaited", "outcome", "promise", "reply", "settle"]

Name = TypeVar("Name")
Value = TypeVar("Value")
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
Done = Callable[[KafkaError | None], None]
"""Called once: with None when an operation is durable, else with an error."""


class Pending(Protocol[Answer_co]):
    """What callbacks wait for: a `Later`, or a `Ticket`."""

    def done(self) -> bool: ...
    def result(self) -> Answer_co: ...
    def add_done_callback(self, callback: Callable[[object], object], /) -> None: ...


def awaited(pending: Pending[Answer]) -> Generator[asyncio.Future[None], None, Answer]:
    """Wait as `await` does, and return the result."""
    if not pending.done():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pending.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        yield from future
    return pending.result()


async def outcome(answer: Awaitable[Answer]) -> Answer:
    """Await an answer; a cancellation cancels it."""
    try:
        return await answer
    except asyncio.CancelledError:
        if isinstance(answer, Later):
            answer.cancel()
        raise


def reply(gather: Gather[Name], answer: Callable[[], Answer]) -> Answer | Later[Answer]:
    """Return the answer once all operations have ended; immediately if they have.

    Args:
        answer: builds the answer, and may raise. It is not called if the client disconnects first.
    """
    return _later(gather, answer) if gather.pending else answer()


def promise(
    start: Callable[[Callable[[Value], None]], None], answer: Callable[[Value], Answer]
) -> Later[Answer]:
    """Return an answer that a callback will provide.

    Args:
        start: begins the work with the callback; its exceptions reach the caller.
        answer: builds the answer from the callback's value.
    """
    gather: Gather[None] = Gather()
    start(gather.part(None))
    return _later(gather, lambda: answer(gather.outcomes[None]))


def _later(gather: Gather[Name], answer: Callable[[], Answer]) -> Later[Answer]:
    later: Later[Answer] = Later()
    gather.promise(later, answer)
    return later
