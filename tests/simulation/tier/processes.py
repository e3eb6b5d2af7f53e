"""Processes whose clocks run at their own pace."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import Any

from tests.simulation.loop import Process, SimulatedLoop, process_of

FASTEST, SLOWEST = 1.1, 0.9
"""How far clocks drift."""


class Paced(Process):
    """A process.

    Args:
        pace: how many of its seconds pass in one.
    """

    def __init__(self, name: str, pace: float = 1.0) -> None:
        super().__init__(name)
        self.pace = pace


class TierLoop(SimulatedLoop):
    """The loop of many processes."""

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        process = process_of(context)
        if isinstance(process, Paced) and process.pace != 1.0 and when > self.now:
            when = self.now + (when - self.now) / process.pace
        return super().call_at(when, callback, *args, context=context)


class PacedClock:
    """The clock of a machine that runs a process.

    Args:
        ahead_ms: how far its wall clock is ahead.
    """

    def __init__(self, loop: SimulatedLoop, process: Paced, ahead_ms: int = 0) -> None:
        self._loop, self._process = loop, process
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self._ahead_ms + int(self._loop.now * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.now * self._process.pace * 1000)
