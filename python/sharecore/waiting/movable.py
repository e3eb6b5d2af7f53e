"""Test time that can be moved forward: a clock and its timers."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.clock import Clock
from sharecore.waiting.timers import Timer, Timers


class MovableTime:
    """A clock and timers that follow another clock until `advance` moves them ahead of it.

    It is a `Clock` and a `Timers`.

    Args:
        clock: the clock to follow.
        timers: schedules callbacks, usually the event loop.
    """

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._ahead_ms = 0
        self._pending: set[_Pending] = set()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, moved forward."""
        return self._clock.now_ms() + self._ahead_ms

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go backwards, moved forward."""
        return self._clock.monotonic_ms() + self._ahead_ms

    def call_soon(self, callback: Callable[[], None], /) -> object:
        """Schedule the callback for the next turn of the event loop."""
        return self._timers.call_soon(callback)

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Schedule the callback in `delay` seconds, or when `advance` has moved that far."""
        return _Pending(self, self.monotonic_ms() + delay * 1000, callback)

    def advance(self, milliseconds: int) -> int:
        """Move time forward; return how many timers became due. They run in the order of their times.

        Timers scheduled by these callbacks count from the moved time.

        Raises:
            ValueError: `milliseconds` is negative.
        """
        if milliseconds < 0:
            raise ValueError(f"time cannot move back by {-milliseconds} ms")
        self._ahead_ms += milliseconds
        now_ms = self.monotonic_ms()
        due = sorted((each for each in self._pending if each.due_ms <= now_ms), key=lambda each: each.due_ms)
        # due callbacks run from the event loop, in order, so that a failing one does not block the others
        for pending in (*due, *self._pending.difference(due)):
            pending.arm()
        return len(due)


class _Pending:
    """A callback scheduled at a time of `MovableTime`."""

    __slots__ = ("_callback", "_handle", "_time", "due_ms")

    def __init__(self, time: MovableTime, due_ms: float, callback: Callable[[], None]) -> None:
        self._time = time
        self._callback = callback
        self._handle: Timer | None = None
        self.due_ms = due_ms
        time._pending.add(self)
        self.arm()

    def arm(self) -> None:
        """Schedule the callback for the remaining time."""
        if self._handle is not None:
            self._handle.cancel()
        left_ms = max(0, self.due_ms - self._time.monotonic_ms())
        self._handle = self._time._timers.call_later(left_ms / 1000, self._run)

    def cancel(self) -> None:
        """Forget the callback."""
        self._time._pending.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _run(self) -> None:
        self._time._pending.discard(self)
        self._callback()
