"""The one seam through which time enters: everything else takes milliseconds as an argument."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Protocol

from sharecore._core import monotonic_ms, now_ms


class Clock(Protocol):
    """Source of time; a simulator brings its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, for record and write timestamps."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go backwards, also while the machine is suspended, for locks, sessions and
        timeouts.
        """


class SystemClock:
    """The clock of this machine."""

    now_ms = staticmethod(now_ms)
    monotonic_ms = staticmethod(monotonic_ms)


def stopwatch() -> Callable[[], float]:
    """Start a measurement; the returned function returns the milliseconds since.

    For figures alone: no simulator steers it.
    """
    began = perf_counter()
    return lambda: (perf_counter() - began) * 1000
