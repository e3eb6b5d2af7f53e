"""Answers that come later, as the futures that handlers of requests return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sharecore.waiting.callbacks import Gather

Value = TypeVar("Value")
Answer = TypeVar("Answer")


def reply(gather: Gather[Any], answer: Callable[[], Answer]) -> Answer | asyncio.Future[Answer]:
    """The answer once all operations have ended; at once when they have.

    Args:
        answer: makes the answer, and may raise. A client that has gone meanwhile gets none.
    """
    return _future(gather, answer) if gather.pending else answer()


def promise(
    start: Callable[[Callable[[Value], None]], None], answer: Callable[[Value], Answer]
) -> asyncio.Future[Answer]:
    """The answer that a callback will bring.

    Args:
        start: begins the work; it is handed the callback. What it raises, the caller gets.
        answer: makes the answer out of what the callback gets.
    """
    gather: Gather[None] = Gather()
    start(gather.part(None))
    return _future(gather, lambda: answer(gather.outcomes[None]))


def _future(gather: Gather[Any], answer: Callable[[], Answer]) -> asyncio.Future[Answer]:
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def ended() -> None:
        if future.done():
            return
        try:
            future.set_result(answer())
        except Exception as error:
            future.set_exception(error)

    gather.when_ended(ended)
    return future
