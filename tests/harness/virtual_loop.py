"""An event loop whose time is virtual: it stands still while anything is to be done, and then jumps."""

from __future__ import annotations

import asyncio
from typing import Any


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own scheduler without files, signals and waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self._selector = self
        self._scheduled: list[Any]
        self._ready: Any

    def time(self) -> float:
        return self.now

    def select(self, timeout: float | None = None) -> list[Any]:
        """What asyncio calls to wait for files: time passes."""
        if timeout is None:
            raise AssertionError("the test waits for something that nothing will bring about")
        self.now += max(0.0, timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no files."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who would have to be woken."""
