"""An answer that is not known yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from sharecore._core import Later as _Later

Answer_co = TypeVar("Answer_co", covariant=True)


class Later(_Later, Generic[Answer_co]):
    """A future reduced to what a request needs: callbacks run at once, not in a later event-loop turn.

    It completes once: later results, errors and cancellations are ignored.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Answer_co]:
        answer: Answer_co = yield from _wait(self).__await__()
        return answer


async def outcome(answer: Awaitable[Any] | _Later) -> Any:
    """Await an answer of Python or of the engine; a cancellation cancels it."""
    if not isinstance(answer, _Later):
        return await answer
    try:
        return await _wait(answer)
    except asyncio.CancelledError:
        answer.cancel()
        raise


async def _wait(later: _Later) -> Any:
    if not later.done():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        later.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        await future
    return later.result()
