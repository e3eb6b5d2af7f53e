"""Threads for handlers that are plain functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

_Call = Callable[[], None]


class HandlerThreads:
    """Runs calls in up to `most` threads, each started when it is first needed.

    concurrent.futures' pool is not used because Python waits for its threads at exit: a hanging one would
    keep a worker's process alive forever.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    def submit(self, call: _Call) -> None:
        """Run a call in a thread; it must not raise.

        Raises:
            RuntimeError: no thread can be started; the call will not run.
        """
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
            name = f"sharecore handler {len(self._threads)}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._calls.put(call)

    def close(self) -> None:
        """End the threads, each after its current call."""
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # a job must not stay alive until the next one
            self._idle.release()
