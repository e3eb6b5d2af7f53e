"""Processes whose clocks run at their own pace."""

from __future__ import annotations

from contextvars import Context, copy_context

from tests.simulation.loop import Clock, Process, SimulatedLoop, process_of

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

    def due(self, when: float, context: Context | None) -> float:
        process = process_of(copy_context() if context is None else context)
        if isinstance(process, Paced) and process.pace != 1.0 and when > self.now:
            return self.now + (when - self.now) / process.pace
        return when


AHEAD_MS = (-5_000, 0, 60_000)
"""How far the wall clocks of machines are ahead that drift."""


class NodeClocks(Clock):
    """What the wall clocks of all nodes show.

    Args:
        drifts: whether they differ.
    """

    def __init__(self, loop: SimulatedLoop, *, drifts: bool) -> None:
        super().__init__(loop)
        self._ahead_ms = AHEAD_MS if drifts else (0,)

    def between(self, begin: float, end: float) -> tuple[int, int]:
        """The earliest and the latest time that any of them showed."""
        earliest_ms, latest_ms = super().between(begin, end)
        return earliest_ms + min(self._ahead_ms), latest_ms + max(self._ahead_ms)


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
