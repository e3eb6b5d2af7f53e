"""An answer that is not known yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Protocol, TypeVar

from sharecore._core import Later

__all__ = ["Later", "awaited", "outcome"]

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


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
