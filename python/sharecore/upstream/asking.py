"""Redundant requests, of which one answer is enough."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TypeVar

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.errors import KafkaError

Value = TypeVar("Value")


async def first_answer(asks: Iterable[Callable[[], Awaitable[Value]]], patience_s: float) -> Value:
    """Return the first answer of several requests.

    Args:
        asks: each starts when the previous ones have failed or not answered within `patience_s`.
        patience_s: seconds.

    Raises:
        AuthenticationFailed: the first one that occurred.
        KafkaError: all have failed; the error of the last.
    """
    left = deque(asks)
    waiting: list[asyncio.Future[Value]] = []
    failed: KafkaError = Disconnected("no known brokers")
    try:
        while left or waiting:
            if left:
                waiting.append(asyncio.ensure_future(left.popleft()()))
            timeout = patience_s if left else None
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for each in [each for each in waiting if each.done()]:
                waiting.remove(each)
                try:
                    return each.result()
                except AuthenticationFailed:
                    raise
                except KafkaError as error:
                    failed = error
        raise failed
    finally:
        for each in waiting:
            drop(each)


async def answer_unless(
    ask: Coroutine[object, None, Value],
    is_vain: Callable[[], Coroutine[object, None, bool]],
    patience_s: float,
) -> Value | None:
    """Return the answer of a request, or None if waiting for it is in vain.

    Args:
        is_vain: asked after each `patience_s` without an answer.
    """
    asked = asyncio.ensure_future(ask)
    checked: asyncio.Future[bool] | None = None
    try:
        while True:
            pending: list[asyncio.Future[Value] | asyncio.Future[bool]] = [asked]
            if checked is not None:
                pending.append(checked)
            timeout = patience_s if checked is None else None
            await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            if checked is None:
                checked = asyncio.ensure_future(is_vain())
            elif checked.done():
                if checked.result():
                    return None
                checked = None
    finally:
        drop(asked)
        if checked is not None:
            drop(checked)


def drop(answer: asyncio.Future[Value]) -> None:
    """Drop an answer and its error."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()
