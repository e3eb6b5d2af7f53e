"""Work that may block, in dedicated threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE_MAX = 4


class Blocked(Exception):
    """The work timed out, or too many threads are stuck."""


class BlockingWork:
    """Run blocking work, such as reading a file of a hanging mount, beside the event loop.

    The threads are daemons, and not a shared pool: a thread that is stuck forever blocks neither the end of
    the process nor other work.

    Args:
        what: name prefix of the threads.
        at_once_max: maximum number of threads, including stuck ones.

    Attributes:
        running: current number of threads.
    """

    def __init__(self, what: str, at_once_max: int = _AT_ONCE_MAX) -> None:
        self._what = what
        self._at_once_max = at_once_max
        self.running = 0

    async def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """Return the result of `work`, which must not use objects of the event loop.

        Raises:
            Blocked: the work did not end within `timeout_s`, or too many threads are stuck.
        """
        if self.running >= self._at_once_max:
            raise Blocked(f"{self.running} reads are stuck")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        self.running += 1

        def run() -> None:
            try:
                value = work()
            except BaseException as error:  # the waiting caller receives it
                _hand_over(loop, partial(self._fail, ended, error))
            else:
                _hand_over(loop, partial(self._succeed, ended, value))

        threading.Thread(target=run, name=f"sharecore-{self._what}", daemon=True).start()
        # not asyncio.wait_for: until Python 3.12 it may swallow a cancellation
        timer = loop.call_later(timeout_s, _give_up, ended, timeout_s)
        try:
            return await ended
        finally:
            timer.cancel()

    def _succeed(self, ended: asyncio.Future[T], value: T) -> None:
        self.running -= 1
        if not ended.done():
            ended.set_result(value)

    def _fail(self, ended: asyncio.Future[T], error: BaseException) -> None:
        self.running -= 1
        if not ended.done():
            ended.set_exception(error)


def _give_up(ended: asyncio.Future[T], timeout_s: float) -> None:
    if not ended.done():
        ended.set_exception(Blocked(f"timed out after {timeout_s:g} s"))


def _hand_over(loop: asyncio.AbstractEventLoop, end: Callable[[], object]) -> None:
    # the loop may have ended in the meantime
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(end)
