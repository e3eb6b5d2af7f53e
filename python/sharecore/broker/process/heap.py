"""Return of freed memory to the system: the allocator keeps as much as at its peak."""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections.abc import Callable
from pathlib import Path

_STATM = Path("/proc/self/statm")
_LOOK_SECONDS = 1.0
_TRIM_SECONDS = 30.0
"""Maximum time to keep freed memory after a much higher peak."""
_SLACK_BYTES = 32 << 20


def keep_heap_small() -> None:
    """Start the trimming thread; do nothing if the allocator cannot trim."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None and _STATM.exists():
        trimmer = Trimmer(lambda: trim(0), _resident_bytes, time.monotonic)
        threading.Thread(target=_run, args=(trimmer,), name="sharecore-heap", daemon=True).start()


class Trimmer:
    """Trim memory after a peak, once usage has stopped growing.

    Args:
        trim: returns free memory to the system.
        resident_bytes: returns the memory of the process.
        now_s: returns the time.
    """

    def __init__(
        self, trim: Callable[[], object], resident_bytes: Callable[[], int], now_s: Callable[[], float]
    ) -> None:
        self._trim = trim
        self._resident_bytes = resident_bytes
        self._now_s = now_s
        self._before = self._least = self._after = resident_bytes()
        self._trimmed_s = now_s()

    def look(self) -> None:
        """Check the memory of the process; called periodically."""
        now = self._resident_bytes()
        is_at_rest = now <= self._before + _SLACK_BYTES // 4
        has_grown = now > self._after + _SLACK_BYTES
        is_due = self._now_s() - self._trimmed_s >= _TRIM_SECONDS and now > self._least + 2 * _SLACK_BYTES
        if (has_grown and is_at_rest) or is_due:
            self._trim()
            self._trimmed_s = self._now_s()
            now = self._after = self._resident_bytes()
        self._before = now
        self._least = min(self._least, now)
        self._after = min(self._after, now)


def _run(trimmer: Trimmer) -> None:
    while True:
        time.sleep(_LOOK_SECONDS)
        trimmer.look()


def _resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * mmap.PAGESIZE
