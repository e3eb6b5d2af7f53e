"""An answer that is not known yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from sharecore._core import Later as _Later

Answer = TypeVar("Answer")


class Later(_Later, Generic[Answer]):
    """What a request needs of a future: callbacks are called at once, not in another turn of the event loop.

    It is done once: what is set, raised or cancelled after that is passed over.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Answer]:
        answer: Answer = yield from _wait(self).__await__()
        return answer


async def outcome(answer: Awaitable[Any] | _Later) -> Any:
    """Wait for an answer, one of the engine's as well; if nobody wants it any more, cancel it."""
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
