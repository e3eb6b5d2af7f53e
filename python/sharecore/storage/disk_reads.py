"""Disk reads in a few threads, which do not block the event loop."""

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
"""Concurrent reads; further ones wait."""


class DiskReads:
    """Threads that read from disk, and callers waiting for the store's own read threads.

    Args:
        threads: the most concurrent reads; threads start on demand.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, "sharecore-read")
        self._bucket_threads = ThreadPoolExecutor(threads, "sharecore-bucket-read")
        self._waiting: dict[int, tuple[Reading | None, Callable[[ReadApart], object]]] = {}

    def run(self, read: Callable[[], T], *, from_bucket: bool = False) -> asyncio.Future[T]:
        """Call `read` in a thread; the future has its result or exception.

        Args:
            read: must not use objects of the event loop; it may only call the store.
            from_bucket: it may wait for the bucket, and has threads that other reads do not need.
        """
        threads = self._bucket_threads if from_bucket else self._threads
        return asyncio.get_running_loop().run_in_executor(threads, read)

    def begun(self, number: int, reading: Reading | None, ended: Callable[[ReadApart], object]) -> None:
        """Register a read by a thread of the store.

        Args:
            number: the store's number for it.
            reading: where the result is stored; None for reads that only locate records.
            ended: called with the result.
        """
        self._waiting[number] = reading, ended

    def ended(self, numbers: Sequence[int]) -> None:
        """Complete reads that have ended in the store."""
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
        """Wait for running reads; drop waiting ones and their callers."""
        self._threads.shutdown(cancel_futures=True)
        self._bucket_threads.shutdown(cancel_futures=True)
        self._waiting.clear()
