"""The HTTP listener of metrics and health: GET, one answer per connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast

from sharecore.network.door import Door

log = logging.getLogger("sharecore.metrics")


class HttpLimits(NamedTuple):
    """Limits of the listener.

    Args:
        connections_max: maximum connections (sharecore.metrics.connections.max).
        head_bytes_max: maximum size of a request's line and headers (sharecore.metrics.request.max.bytes).
        request_ms_max: timeout for receiving a request, and for sending its answer
            (sharecore.metrics.request.timeout.ms).
    """

    connections_max: int = 32
    head_bytes_max: int = 8192
    request_ms_max: int = 5000


class Page(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Make = Callable[[], Awaitable[Page]]
Writer = asyncio.StreamWriter
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class HttpListener:
    """Serve a few pages, without users and TLS: bind it to an internal address.

    Args:
        pages: functions that create the pages, by path.
        otherwise: functions for clients that accept another media type, by path and type.
    """

    def __init__(
        self,
        pages: Mapping[str, Make],
        otherwise: Mapping[tuple[str, str], Make] | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        self._pages = pages
        self._otherwise = otherwise or {}
        self._limits = limits or HttpLimits()
        self._request_s = self._limits.request_ms_max / 1000
        self._door = Door("of metrics", lambda: self._limits.connections_max, self._visitor)

    async def listen(self, host: str | None, port: int) -> int:
        """Start to listen; return the port, chosen by the system if `port` is 0.

        Raises:
            OSError: the address is not available.
        """
        bound = await self._door.bind(host, port)
        self._door.listen()
        return bound

    def close(self) -> None:
        """Stop listening."""
        self._door.close()

    def _visitor(self) -> _Visitor:
        reader = asyncio.StreamReader(limit=self._limits.head_bytes_max)
        return _Visitor(reader, self._serve)

    async def _serve(self, visitor: _Visitor, reader: asyncio.StreamReader, writer: Writer) -> None:
        try:
            page, head_only = await self._answer(visitor, reader)
            writer.write(_head(page) + (b"" if head_only else page.body))
            await asyncio.wait_for(writer.drain(), self._request_s)
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), self._request_s)
        except (OSError, asyncio.TimeoutError, EOFError, asyncio.LimitOverrunError):
            log.debug("a request for metrics broke off")
            visitor.abort()
        finally:
            writer.close()

    async def _answer(self, visitor: _Visitor, reader: asyncio.StreamReader) -> tuple[Page, bool]:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self._request_s)
        visitor.is_idle = False
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Page(400, b"not a request of HTTP/1\n"), False
        method, path = words[0], words[1].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return Page(405, b"only GET and HEAD\n"), False
        make = self._pages.get(path)
        if make is None:
            known = " ".join(self._pages)
            return Page(404, f"no such page; there are {known}\n".encode()), method == b"HEAD"
        accepted = _accepted(head)
        for (at, media_type), other in self._otherwise.items():
            if at == path and media_type in accepted:
                make = other
        try:
            return await make(), method == b"HEAD"
        except Exception:
            log.exception("%s could not be made", path)
            return Page(500, b"this page could not be made; the log says why\n"), method == b"HEAD"


class _Visitor(asyncio.StreamReaderProtocol):
    """One connection; idle until its request is complete."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        serve: Callable[[_Visitor, asyncio.StreamReader, Writer], Awaitable[None]],
    ) -> None:
        super().__init__(reader, lambda reader, writer: serve(self, reader, writer))
        self.is_idle = False
        self._made: asyncio.BaseTransport | None = None
        self._hooks: list[Callable[[], None]] = []

    def on_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` once when the connection has closed."""
        self._hooks.append(hook)

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._made is not None:
            cast(asyncio.Transport, self._made).abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made, self.is_idle = transport, True
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook()


def _accepted(head: bytes) -> str:
    """Return the value of the Accept header."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"accept":
            return value.decode("latin-1").lower()
    return ""


def _head(page: Page) -> bytes:
    reason = _REASONS[page.status]
    return (
        f"HTTP/1.1 {page.status} {reason}\r\nContent-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\nConnection: close\r\n\r\n"
    ).encode()
