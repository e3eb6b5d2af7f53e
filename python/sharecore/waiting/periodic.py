"""Work that comes round again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[object]]


class Periodic:
    """Runs work on the event loop, a pause before each round; one that fails is logged, and the next comes.

    Args:
        work: one round.
        interval_ms: the pause, asked for anew each time.
        what: whose work it is, for the log.
        sleep: waits for so many seconds.
    """

    def __init__(
        self,
        work: Callable[[], Awaitable[object]],
        interval_ms: Callable[[], float],
        what: str,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._work = work
        self._interval_ms = interval_ms
        self._what = what
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins; the first round comes after a pause."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """End, in the middle of a round too."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._sleep(self._interval_ms() / 1000)
            try:
                await self._work()
            except Exception:
                logger.exception("%s failed; the next round comes all the same", self._what)
