"""Periodic work."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[object]]


class Periodic:
    """Run work on the event loop, with a pause before each round; a failed round is logged.

    Args:
        work: one round.
        interval_ms: returns the pause before the next round.
        what: the work's name, for the log.
        sleep: waits for a number of seconds.
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
        """Start; the first round follows a pause."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop, even in the middle of a round."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await self._sleep(self._interval_ms() / 1000)
            try:
                await self._work()
            except Exception:
                logger.exception("%s failed; retrying in the next round", self._what)


class PeriodicLook(ABC):
    """Looks at something on the event loop, again and again.

    Args:
        interval_ms: the pause before each look.
        what: the look's name, for the log.
    """

    def __init__(self, interval_ms: float, what: str) -> None:
        self._rounds = Periodic(self._round, lambda: interval_ms, what)

    def start(self) -> None:
        """Start; the first look follows a pause."""
        self._rounds.start()

    def stop(self) -> None:
        """Stop looking."""
        self._rounds.stop()

    async def _round(self) -> None:
        self.look()

    @abstractmethod
    def look(self) -> None:
        """Look once."""
