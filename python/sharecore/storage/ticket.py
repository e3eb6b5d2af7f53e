"""Says when a write is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from sharecore.errors import KafkaError
from sharecore.waiting import settle


class Ticket:
    """One write on its way to the disk.

    `await ticket` returns None when the write is durable, and raises KafkaError(KAFKA_STORAGE_ERROR) when it
    failed.
    Callers on a hot path use `add_done_callback`, which costs no task.
    """

    __slots__ = ("_callbacks", "_done", "error", "sequence")

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.error: KafkaError | None = None
        self._done = False
        self._callbacks: list[Callable[[Ticket], object]] = []

    def done(self) -> bool:
        """Whether it is known how the write ended."""
        return self._done

    def exception(self) -> KafkaError | None:
        """Why the write failed; None when it has not."""
        return self.error

    def add_done_callback(self, callback: Callable[[Ticket], object]) -> None:
        """Calls back once the write has ended, at once when it has."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def settle(self, error: KafkaError | None = None) -> None:
        """Ends the write; for the storage alone. A callback that raises is logged and holds up no other."""
        self.error = error
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        settle(callbacks, self)

    def __await__(self) -> Generator[Any, None, None]:
        if not self._done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
            yield from future
        if self.error is not None:
            raise self.error
