"""The one seam through which time enters: everything else takes milliseconds as an argument."""

from __future__ import annotations

from typing import Protocol

from sharecore._core import monotonic_ms, now_ms


class Clock(Protocol):
    """Source of time; a simulator brings its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, for record and write timestamps."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go backwards, also while the machine is suspended, for locks, sessions and
        time-outs.
        """


class SystemClock:
    """The clock of this machine."""

    now_ms = staticmethod(now_ms)
    monotonic_ms = staticmethod(monotonic_ms)
