"""A short script that still shows a difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tests.differential.wire.script import Step


def minimize(
    steps: Sequence[Step], differs: Callable[[list[Step]], bool], *, seconds_max: float = 60
) -> list[Step]:
    """Leaves out steps, ever smaller chunks of them, as long as `differs`; the last one stays.

    Args:
        differs: plays a script anew and tells whether it still shows what is sought.
        seconds_max: gives what it has by then.
    """
    kept = list(steps)
    chunk = max(1, len(kept) // 2)
    until = time.monotonic() + seconds_max
    while time.monotonic() < until:
        removed = False
        end = len(kept) - 1
        while end > 0 and time.monotonic() < until:
            start = max(0, end - chunk)
            shorter = kept[:start] + kept[end:]
            if differs(shorter):
                kept = shorter
                removed = True
            end = start
        if chunk == 1 and not removed:
            break
        chunk = max(1, chunk // 2)
    return kept
