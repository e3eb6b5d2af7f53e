"""Completion of a write."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from sharecore._core import Ticket as _Ticket


class Ticket(_Ticket):
    """A pending write.

    `await ticket` returns None when the write is durable, and raises KafkaError(KAFKA_STORAGE_ERROR) if it
    failed. Callers on a hot path use `add_done_callback`, which costs no task.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
            yield from future
        if self.error is not None:
            raise self.error
