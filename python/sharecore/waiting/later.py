"""An answer that is not known yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any

from sharecore._core import Later, Ticket

__all__ = ["Later", "awaited", "outcome"]


def awaited(pending: Later[Any] | Ticket) -> Generator[Any, None, Any]:
    """Wait as `await` does, and return the result."""
    if not pending.done():
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pending.add_done_callback(lambda _: None if future.done() else future.set_result(None))
        yield from future
    return pending.result()


async def outcome(answer: Awaitable[Any]) -> Any:
    """Await an answer; a cancellation cancels it."""
    try:
        return await answer
    except asyncio.CancelledError:
        if isinstance(answer, Later):
            answer.cancel()
        raise
