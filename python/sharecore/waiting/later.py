"""An answer that is not known yet."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from sharecore._core import Later as _Later

Answer = TypeVar("Answer")


class Later(_Later, Generic[Answer]):
    """What a request needs of a future: callbacks are called at once, not in another turn of the event loop.

    It is done once: what is set, raised or cancelled after that is passed over.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Answer]:
        if not self.done():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda _: None if future.done() else future.set_result(None))
            yield from future
        answer: Answer = self.result()
        return answer
