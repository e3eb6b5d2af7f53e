"""The one seam through which time enters: everything else takes milliseconds as an argument."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time; a simulator brings its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, for record and write timestamps."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go backwards, for locks, sessions and time-outs."""


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
