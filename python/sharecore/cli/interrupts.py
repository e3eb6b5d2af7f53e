"""Defer Ctrl-C until the work under way has ended."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """A context manager in which Ctrl-C is noted, and raises KeyboardInterrupt in `waiting` alone.

    A second Ctrl-C raises at once.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._waiting = False
        self._before: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> Interrupts:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Raise KeyboardInterrupt for a Ctrl-C within this block or before it."""
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    def check(self) -> None:
        """Raise KeyboardInterrupt after a Ctrl-C."""
        if self.interrupted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.interrupted = self.interrupted, True
        if again or self._waiting:
            raise KeyboardInterrupt
