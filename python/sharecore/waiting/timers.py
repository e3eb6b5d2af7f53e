"""Timers: the event loop's in the broker, stepped by hand in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sharecore.clock import Clock


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Forgets the call."""


CallLater = Callable[[float, Callable[[], None]], Timer]
"""Calls back after so many seconds; `asyncio.AbstractEventLoop.call_later`."""


class Timers(Protocol):
    """Runs callbacks later; an asyncio event loop is one."""

    def call_soon(self, callback: Callable[[], None], /) -> object:
        """Run the callback once the present turn is over."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Run the callback in `delay` seconds."""


class Deadline:
    """A time-out that is mostly put off before it runs out, such as a member's session.

    Putting it off only moves a number; the timer, when it fires too early, is set again for what remains.

    Args:
        clock: its monotonic milliseconds count.
        timers: where the callback waits.
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
        """Expires `delay_ms` from now, whatever was set before."""
        self._at_ms = self._clock.monotonic_ms() + delay_ms
        if self._handle is None or self._at_ms < self._timer_ms:
            self._arm(delay_ms)

    def cancel(self) -> None:
        """Do not expire."""
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
