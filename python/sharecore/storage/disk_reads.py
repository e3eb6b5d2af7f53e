"""Reads that the event loop does not wait for: in a few threads, so that it goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from sharecore.errors import KafkaError
from sharecore.storage.log import ReadApart, Slice
from sharecore.waiting import settle

if TYPE_CHECKING:
    from sharecore._core import Reading

T = TypeVar("T")

THREADS = 4
"""So many reads at once; what comes beyond waits for its turn."""


class DiskReads:
    """Threads that look things up on the disk, and who waits for the threads of the store that read records.

    Args:
        threads: how many look things up at a time; none runs before there is something.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, "sharecore-read")
        self._waiting: dict[int, tuple[Reading | None, Callable[[ReadApart], object]]] = {}

    def run(self, read: Callable[[], T]) -> asyncio.Future[T]:
        """Call `read` in a thread; the future has what it returns or raise.

        `read` leaves everything alone that belongs to the event loop: it calls the store, nothing else.
        """
        return asyncio.get_running_loop().run_in_executor(self._threads, read)

    def begun(self, number: int, reading: Reading | None, ended: Callable[[ReadApart], object]) -> None:
        """A thread of the store reads.

        Args:
            number: what the store calls it.
            reading: has what it finds; None where it only learns where that lies.
            ended: called with that.
        """
        self._waiting[number] = reading, ended

    def ended(self, numbers: Sequence[int]) -> None:
        """Read of the store have ended."""
        for number in numbers:
            if number not in self._waiting:
                continue
            reading, ended = self._waiting.pop(number)
            found: ReadApart = None
            if reading is not None:
                try:
                    found = Slice(*reading.result())
                except KafkaError as error:
                    found = error
            settle((ended,), found)

    def close(self) -> None:
        """Wait for what is being looked up, and forget what is not and who waits for a read."""
        self._threads.shutdown(cancel_futures=True)
        self._waiting.clear()
