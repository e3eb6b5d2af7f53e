"""Reads that wait for the disk: in a few threads, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 4
"""So many reads at once; what comes beyond waits for its turn."""


class DiskReads:
    """Threads that read from the disk; none runs before the first read.

    Args:
        threads: how many reads may be under way at once.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, "sharecore-read")

    def run(self, read: Callable[[], T]) -> asyncio.Future[T]:
        """Calls `read` in a thread; the future has what it returns or raises.

        `read` leaves everything alone that belongs to the event loop: it calls the store, nothing else.
        """
        return asyncio.get_running_loop().run_in_executor(self._threads, read)

    def close(self) -> None:
        """Waits for the reads under way and forgets those that have not begun."""
        self._threads.shutdown(cancel_futures=True)
