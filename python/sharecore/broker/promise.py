"""From callbacks, as coordinators give them, to the futures that handlers return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")
Message = dict[str, Any]


def promise(
    start: Callable[[Callable[[Value], None]], None], answer: Callable[[Value], Message]
) -> asyncio.Future[Message]:
    """The answer that a callback will bring.

    Args:
        start: begins the work; it is handed the callback.
        answer: makes the answer out of what the callback gets. A client that has gone meanwhile gets none.
    """
    future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    def done(value: Value) -> None:
        if not future.done():
            future.set_result(answer(value))

    start(done)
    return future
