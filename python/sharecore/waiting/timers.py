"""Timers: the broker gives its event loop's, a test those that it steps by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Forgets the call."""


CallLater = Callable[[float, Callable[[], None]], Timer]
"""Calls back after so many seconds; `asyncio.AbstractEventLoop.call_later`."""
