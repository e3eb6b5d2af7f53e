"""An answer that is not known yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from sharecore.waiting.callbacks import settle

Answer = TypeVar("Answer")


class Later(Generic[Answer]):
    """What a request needs of a future: callbacks are called at once, not in another turn of the event loop.

    It is done once: what is set, raised or cancelled after that is passed over.
    """

    __slots__ = ("_callbacks", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[Any], object]] = []
        self._done = False
        self._error: BaseException | None = None
        self._value: Answer | None = None

    def done(self) -> bool:
        """Whether the answer is known, or will never be."""
        return self._done

    def cancelled(self) -> bool:
        """Whether nobody wants it any more."""
        return isinstance(self._error, asyncio.CancelledError)

    def exception(self) -> BaseException | None:
        """Why there is no answer; None where there is one."""
        return self._error

    def result(self) -> Any:
        """The answer; raises what there is instead."""
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, value: Answer) -> None:
        """The answer is there."""
        if not self._done:
            self._value = value
            self._end()

    def set_exception(self, error: BaseException) -> None:
        """There will be none."""
        if not self._done:
            self._error = error
            self._end()

    def cancel(self) -> bool:
        """Nobody wants it any more; says whether it was still to come."""
        if self._done:
            return False
        self.set_exception(asyncio.CancelledError())
        return True

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Calls back with this object when it is done, at once when it is."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def _end(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        settle(callbacks, self)

    def __await__(self) -> Generator[Any, None, Answer]:
        if not self._done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
            yield from future
        answer: Answer = self.result()
        return answer
