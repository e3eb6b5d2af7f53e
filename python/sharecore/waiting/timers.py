"""Timers: the event loop's in the broker, stepped manually in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sharecore.clock import Clock


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


CallLater = Callable[[float, Callable[[], None]], Timer]
"""Schedules a callback after a number of seconds; `asyncio.AbstractEventLoop.call_later`."""


class Timers(Protocol):
    """Scheduler of callbacks; an asyncio event loop is one."""

    def call_soon(self, callback: Callable[[], None], /) -> object:
        """Schedule the callback after the current turn."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Schedule the callback in `delay` seconds."""


class Deadline:
    """A timeout that is usually postponed before it expires, such as a member's session.

    Postponing only changes a number; a timer that fires too early is set again for the rest.

    Args:
        clock: provides monotonic milliseconds.
        timers: schedules the callback.
        expired: called once when the deadline has passed.
    """

    __slots__ = ("_at_ms", "_clock", "_expired", "_handle", "_timer_ms", "_timers")

    def __init__(self, clock: Clock, timers: Timers, expired: Callable[[], None]) -> None:
        self._clock = clock
        self._timers = timers
        self._expired = expired
        self._handle: Timer | None = None
        self._at_ms = 0
        self._timer_ms = 0

    def set(self, delay_ms: int) -> None:
        """Set the deadline to `delay_ms` from now, replacing any previous one."""
        self._at_ms = self._clock.monotonic_ms() + delay_ms
        if self._handle is None or self._at_ms < self._timer_ms:
            self._arm(delay_ms)

    def cancel(self) -> None:
        """Cancel the deadline."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self, delay_ms: int) -> None:
        self.cancel()
        self._timer_ms = self._at_ms
        self._handle = self._timers.call_later(delay_ms / 1000, self._fired)

    def _fired(self) -> None:
        self._handle = None
        rest_ms = self._at_ms - self._clock.monotonic_ms()
        if rest_ms > 0:
            self._arm(rest_ms)
        else:
            self._expired()
