"""Waits for something that happens beside the test, in another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_MAX = 60.0
_PAUSE_S = 0.02


def until(holds: Callable[[], object], what: str = "", seconds: float = SECONDS_MAX) -> None:
    """Wait until something holds; fail after `seconds`, for which a test that passes never waits.

    Args:
        what: named by the failure.
    """
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what or holds}: not within {seconds:g} s"
        time.sleep(_PAUSE_S)
