"""A thread for long work that is shared fairly between owners."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class FairThread:
    """Run one piece of work at a time beside the event loop.

    Owners (users or addresses) take turns, whatever the length of their queues.

    Args:
        name: the thread's name.
    """

    def __init__(self, name: str) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Queued work by owner; the first owner is next."""
        self._is_busy = False
        self._pool = ThreadPoolExecutor(1, f"sharecore-{name}")

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Return the result of `work`, run in the thread.

        After a cancellation this ends only when the thread has finished the work.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        self._begin_next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end()
            raise
        job = self._pool.submit(work)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            if not job.cancel():
                await asyncio.wait([asyncio.wrap_future(job)])
            raise
        finally:
            self._end()

    def _end(self) -> None:
        self._is_busy = False
        self._begin_next()

    def _begin_next(self) -> None:
        while self._waiting and not self._is_busy:
            owner, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            del self._waiting[owner]
            if turns:
                self._waiting[owner] = turns
            if not turn.done():
                self._is_busy = True
                turn.set_result(None)
