"""In-memory persister of a trace, whose writes can be held or made to fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sharecore.trace.engines import Combine, StateBatch, Write


class TracePersister:
    """Store writes, and answer each at once, with an error, or when the trace says so.

    Attributes:
        written: the writes of the current operation, answered or not.
    """

    def __init__(self, combine: Combine, start_offset: int, state: Sequence[StateBatch]) -> None:
        self.start_offset = start_offset
        self.state = list(state)
        self.written: list[Write] = []
        self._combine = combine
        self._hold = False
        self._fail_next = 0
        self._fail_code = 0
        self._held: deque[Write] = deque()

    def configure(self, *, hold: bool, fail_next: int, fail_code: int) -> None:
        self._hold = hold
        self._fail_next = fail_next
        self._fail_code = fail_code

    def write(self, write: Write) -> int | None:
        """Return the error code that answers the write; None while it is held."""
        self.written.append(write)
        if self._hold:
            self._held.append(write)
            return None
        if self._fail_next > 0:
            self._fail_next -= 1
            return self._fail_code
        self._store(write)
        return 0

    def complete(self, most: int | None, code: int) -> list[Write]:
        """Answer the `most` oldest held writes (None: all) with `code`."""
        count = len(self._held) if most is None else min(max(most, 0), len(self._held))
        answered = [self._held.popleft() for _ in range(count)]
        if code == 0:
            for write in answered:
                self._store(write)
        return answered

    def _store(self, write: Write) -> None:
        self.start_offset = write.start_offset
        self.state = self._combine(self.state, write.batches(), write.start_offset)
