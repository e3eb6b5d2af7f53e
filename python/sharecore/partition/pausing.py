"""Groups that are paused: until when, and who is told when a pause ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.waiting import CallLater, Timer

_LOOK_MS_MAX = 60_000
"""A clock that is set anew is noticed after this time."""


class Pauses:
    """The pauses of groups, `share.paused` and `share.paused.until.ms`.

    Args:
        clock: `now_ms` counts, as the settings name times.
        call_later: for pauses that end by themselves.
        ended: called with a group whose pause has ended.
    """

    def __init__(self, clock: Clock, call_later: CallLater, ended: Callable[[str], object]) -> None:
        self._clock = clock
        self._call_later = call_later
        self._ended = ended
        self._timers: dict[str, Timer] = {}

    def is_paused(self, group_id: str, config: GroupConfig) -> bool:
        """Return whether a group gets no records now; if its pause ends by itself, `ended` is called then."""
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
