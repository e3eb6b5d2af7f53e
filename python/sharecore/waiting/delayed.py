"""Fetches that wait for enough bytes or for their maximum wait time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from sharecore.waiting.timers import CallLater, Timer

Answer = TypeVar("Answer")


class DelayedFetch(ABC, Generic[Answer]):
    """A fetch that reads at once, and again whenever more records may be available.

    Args:
        ended: called once with the answer, unless `start` returned it.

    Attributes:
        is_late: whether the maximum wait time has passed.
        waiting: whether the fetch waits.
    """

    def __init__(self, call_later: CallLater, ended: Callable[[Answer], object]) -> None:
        self._call_later = call_later
        self._ended = ended
        self._timer: Timer | None = None
        self.is_late = False
        self.waiting = False

    @abstractmethod
    def look(self, *, late: bool) -> Answer | None:
        """Return the answer, or None to keep waiting; an expired fetch may wait only briefly."""

    @abstractmethod
    def watch(self) -> None:
        """Subscribe `again` to new records."""

    @abstractmethod
    def unwatch(self) -> None:
        """Undo `watch`."""

    def start(self, max_wait_ms: int) -> Answer | None:
        """Read; return None if the fetch waits and `ended` will be called."""
        answer = self.look(late=max_wait_ms <= 0)
        if answer is None:
            self.wait(max_wait_ms)
        return answer

    def wait(self, max_wait_ms: int) -> None:
        """Wait after a read without an answer; `ended` will be called."""
        self.is_late = max_wait_ms <= 0
        self.waiting = True
        if not self.is_late:
            self._timer = self._call_later(max_wait_ms / 1000, self._time_is_over)
        self.watch()

    def again(self) -> bool:
        """Read again; return whether the fetch has stopped waiting."""
        if not self.waiting:
            return True
        answer = self.look(late=self.is_late)
        if answer is None:
            return False
        self.end(answer)
        return True

    def end(self, answer: Answer) -> None:
        """Answer a waiting fetch; do nothing if it was answered."""
        if self.waiting:
            self.cancel()
            self._ended(answer)

    def cancel(self) -> None:
        """Stop waiting, without an answer."""
        if not self.waiting:
            return
        self.waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.unwatch()

    def _time_is_over(self) -> None:
        self._timer = None
        self.is_late = True
        self.again()
