"""Delay of the event loop's timers."""

from __future__ import annotations

import asyncio

from sharecore.metrics.durations import Durations

_EVERY_S = 0.25


class LoopDelay:
    """Measure the delay of a periodic timer."""

    def __init__(self) -> None:
        self.delays = Durations()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start measuring."""
        due = loop.time() + _EVERY_S

        def fired() -> None:
            self.delays.add(max(0, int((loop.time() - due) * 1e9)))
            self.start(loop)

        self._timer = loop.call_at(due, fired)

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()
