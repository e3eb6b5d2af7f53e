"""Fetches that wait: until there is enough, or their time is over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from sharecore.waiting.timers import CallLater, Timer

Answer = TypeVar("Answer")


class DelayedFetch(ABC, Generic[Answer]):
    """One fetch, which looks at once and again whenever there may be more.

    Args:
        ended: called once with the answer, unless `start` returned it.

    Attributes:
        is_late: whether its time is over.
        waiting: whether it waits.
    """

    def __init__(self, call_later: CallLater, ended: Callable[[Answer], object]) -> None:
        self._call_later = call_later
        self._ended = ended
        self._timer: Timer | None = None
        self.is_late = False
        self.waiting = False

    @abstractmethod
    def look(self, *, late: bool) -> Answer | None:
        """Return the answer; None to go on waiting, which a fetch whose time is over may only for a
        moment.
        """

    @abstractmethod
    def watch(self) -> None:
        """Begins to have `again` called when there may be more."""

    @abstractmethod
    def unwatch(self) -> None:
        """End what `watch` began."""

    def start(self, max_wait_ms: int) -> Answer | None:
        """Look; None when the fetch waits, and `ended` will be called."""
        answer = self.look(late=max_wait_ms <= 0)
        if answer is None:
            self.wait(max_wait_ms)
        return answer

    def wait(self, max_wait_ms: int) -> None:
        """Begins to wait, where a look has brought nothing; `ended` will be called."""
        self.is_late = max_wait_ms <= 0
        self.waiting = True
        if not self.is_late:
            self._timer = self._call_later(max_wait_ms / 1000, self._time_is_over)
        self.watch()

    def again(self) -> bool:
        """Look again; say whether the fetch waits no longer."""
        if not self.waiting:
            return True
        answer = self.look(late=self.is_late)
        if answer is None:
            return False
        self.end(answer)
        return True

    def end(self, answer: Answer) -> None:
        """Answers a fetch that waits; one that does not has been answered."""
        if self.waiting:
            self.cancel()
            self._ended(answer)

    def cancel(self) -> None:
        """Wait no longer, and is not answered."""
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
