"""The bound on the bytes of requests that have been read and are not answered yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class MemoryBudget:
    """Bytes that all connections hold together, of whole requests and of those that have only begun to come.

    Nobody is refused: a connection that finds the budget exhausted reads no more until it is called. So the
    bound is overstepped by no more than what one read of each connection brings.

    Args:
        bytes_max: the bound; a negative one means none.
    """

    def __init__(self, bytes_max: int = -1) -> None:
        self.bytes_max = bytes_max
        self.used_bytes = 0
        self.released_bytes = 0
        """All that was ever given back: it stands still while nobody makes progress."""
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def exhausted(self) -> bool:
        """Whether nothing more should be read for now."""
        return 0 <= self.bytes_max <= self.used_bytes

    def take(self, size: int) -> None:
        """Counts bytes that have been read."""
        self.used_bytes += size

    def release(self, size: int) -> None:
        """Gives bytes back, and calls those who wait once there is room."""
        self.used_bytes -= size
        self.released_bytes += size
        while self._waiting and not self.exhausted:
            self._waiting.popleft()()

    def wait(self, room: Callable[[], None]) -> None:
        """Has `room` called when the budget is no longer exhausted."""
        self._waiting.append(room)

    def withdraw(self, room: Callable[[], None]) -> None:
        """Removes a callback of `wait`; does nothing when it was called already."""
        if room in self._waiting:
            self._waiting.remove(room)
