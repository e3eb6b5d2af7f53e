"""Deferred answers, as returned by request handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sharecore.waiting.callbacks import Gather
from sharecore.waiting.later import Later

Value = TypeVar("Value")
Answer = TypeVar("Answer")
Name = TypeVar("Name")


def reply(gather: Gather[Name], answer: Callable[[], Answer]) -> Answer | Later[Answer]:
    """Return the answer once all operations have ended; immediately if they have.

    Args:
        answer: builds the answer, and may raise. It is not called if the client disconnects first.
    """
    return _later(gather, answer) if gather.pending else answer()


def promise(
    start: Callable[[Callable[[Value], None]], None], answer: Callable[[Value], Answer]
) -> Later[Answer]:
    """Return an answer that a callback will provide.

    Args:
        start: begins the work with the callback; its exceptions reach the caller.
        answer: builds the answer from the callback's value.
    """
    gather: Gather[None] = Gather()
    start(gather.part(None))
    return _later(gather, lambda: answer(gather.outcomes[None]))


def _later(gather: Gather[Name], answer: Callable[[], Answer]) -> Later[Answer]:
    later: Later[Answer] = Later()
    gather.promise(later, answer)
    return later
