"""Calls from one thread to the event loop of another."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable


class Mailbox:
    """Runs posted calls in a loop, in order; one wake-up of the loop serves all waiting calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._scheduled = False

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the loop soon; dropped if the loop is closed. Thread-safe."""
        self._calls.append((function, arguments))
        if not self._scheduled:
            self._scheduled = True
            # a handler's thread may outlive its worker and the loop
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # before the first call is taken: a call posted after the last was taken must schedule again
        self._scheduled = False
        calls = self._calls
        try:
            while calls:
                function, arguments = calls.popleft()
                function(*arguments)
        finally:
            if calls and not self._scheduled:
                self._scheduled = True
                self._loop.call_soon(self._deliver)
