"""Paused groups: when each pause ends, and the callback for its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.waiting import CallLater, Timer

_LOOK_MS_MAX = 60_000
"""Longest timer, after which a changed wall clock is noticed."""


class Pauses:
    """Pauses of groups (`share.paused` and `share.paused.until.ms`).

    Args:
        clock: its `now_ms` applies, as the settings are wall-clock times.
        call_later: schedules the end of timed pauses.
        ended: called with the group when a pause ends.
    """

    def __init__(self, clock: Clock, call_later: CallLater, ended: Callable[[str], object]) -> None:
        self._clock = clock
        self._call_later = call_later
        self._ended = ended
        self._timers: dict[str, Timer] = {}

    def is_paused(self, group_id: str, config: GroupConfig) -> bool:
        """Return whether a group is paused now; schedule `ended` for a timed pause."""
        left_ms = config.pause_left_ms(self._clock.now_ms())
        self.forget(group_id)
        if left_ms:
            wait_s = min(left_ms, _LOOK_MS_MAX) / 1000
            self._timers[group_id] = self._call_later(wait_s, partial(self._look, group_id, config))
        return left_ms != 0

    def forget(self, group_id: str) -> None:
        """Cancel the timer of a group."""
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Cancel all timers."""
        for group_id in [*self._timers]:
            self.forget(group_id)

    def _look(self, group_id: str, config: GroupConfig) -> None:
        if not self.is_paused(group_id, config):
            self._ended(group_id)
