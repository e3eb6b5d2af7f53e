"""Server-sent events: each is the newest look, so slow browsers miss some and delay nobody."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, suppress

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from sharecore.errors import KafkaError
from sharecore.page.sessions import Session
from sharecore.page.views import Json

_COMMENT_S = 15.0
_SEND_S = 30.0
_BYTES_MAX = 8 << 20


class EventStream(StreamingResponse):
    """A stream of events that ends when the browser stops reading or disconnects.

    Args:
        content: the events.
        room: what the stream takes up; left when it has ended.
    """

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[str], room: AbstractContextManager[None]) -> None:
        super().__init__(content)
        room.__enter__()
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""

        async def in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(_SEND_S):
                    await send(message)
            except TimeoutError:
                raise ClientDisconnect from None

        try:
            with suppress(ClientDisconnect):
                await super().__call__(scope, receive, in_time)
        finally:
            self._room.__exit__(None, None, None)


async def looks(
    session: Session, view: Callable[[], Awaitable[Json]], stream_s: float, stopping: asyncio.Event
) -> AsyncIterator[str]:
    """Yield the `view` of each new look, until the stream or the session ends."""
    looker, seen = session.looker, looker_seen(session)
    until = time.monotonic() + stream_s
    # a browser that loses the server retries after this time
    yield "retry: 2000\n\n"
    while not session.ended and not stopping.is_set() and time.monotonic() < until:
        if not await looker.newer(seen, _COMMENT_S):
            yield ": still here\n\n"
            continue
        seen = looker.round
        if session.ended:
            break
        yield event("look", await _shown(session, view))
    if session.ended:
        yield event("ended", {})


def looker_seen(session: Session) -> int:
    """Return the last round seen, so that the first event is immediate if there was one."""
    return 0 if session.looker.now is None else session.looker.round - 1


async def _shown(session: Session, view: Callable[[], Awaitable[Json]]) -> Json:
    head = {"at_ms": round(time.time() * 1000), "trouble": session.looker.trouble}
    try:
        return {**head, **await view()}
    except (KafkaError, OSError) as error:
        return {**head, "error": str(error), "code": getattr(getattr(error, "code", None), "name", "")}


def event(name: str, data: Json) -> str:
    """One event as it is sent."""
    text = json.dumps(data, separators=(",", ":"))
    if len(text) > _BYTES_MAX:
        text = json.dumps({"error": "there is too much to be shown at once"})
    return f"event: {name}\ndata: {text}\n\n"
