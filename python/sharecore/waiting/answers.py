"""Answers that come later, as handlers of requests return them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sharecore.waiting.callbacks import Gather
from sharecore.waiting.later import Later

Value = TypeVar("Value")
Answer = TypeVar("Answer")


def reply(gather: Gather[Any], answer: Callable[[], Answer]) -> Answer | Later[Answer]:
    """The answer once all operations have ended; at once when they have.

    Args:
        answer: makes the answer, and may raise. A client that has gone meanwhile gets none.
    """
    return _later(gather, answer) if gather.pending else answer()


def promise(
    start: Callable[[Callable[[Value], None]], None], answer: Callable[[Value], Answer]
) -> Later[Answer]:
    """Return the answer that a callback will bring.

    Args:
        start: begins the work; it is handed the callback. What it raises, the caller gets.
        answer: makes the answer out of what the callback gets.
    """
    gather: Gather[None] = Gather()
    start(gather.part(None))
    return _later(gather, lambda: answer(gather.outcomes[None]))


def _later(gather: Gather[Any], answer: Callable[[], Answer]) -> Later[Answer]:
    later: Later[Answer] = Later()
    gather.promise(later, answer)
    return later
