"""The HTTP listener of metrics and health: GET, one answer a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

from sharecore.errors import listening_on

log = logging.getLogger("sharecore.metrics")

_REQUEST_BYTES_MAX = 8192
_REQUEST_SECONDS_MAX = 5.0
_CONNECTIONS_MAX = 32


class Page(NamedTuple):
    """What is answered."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Make = Callable[[], Awaitable[Page]]
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class HttpListener:
    """Serves a few pages to who asks; it knows no users and no TLS, so it belongs on an inner address.

    Args:
        pages: what makes each page, by its path.
        otherwise: what makes it for who accepts a media type, by path and type.
    """

    def __init__(
        self, pages: Mapping[str, Make], otherwise: Mapping[tuple[str, str], Make] | None = None
    ) -> None:
        self._pages = pages
        self._otherwise = otherwise or {}
        self._server: asyncio.Server | None = None
        self._open = 0

    async def listen(self, host: str | None, port: int) -> int:
        """Starts; returns the port, which the system chose if `port` is 0.

        Raises:
            OSError: the address cannot be had.
        """
        with listening_on(host, port):
            self._server = await asyncio.start_server(self._serve, host, port, limit=_REQUEST_BYTES_MAX)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def close(self) -> None:
        """Listens no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > _CONNECTIONS_MAX:
                page, head_only = Page(503, b"too many connections\n"), False
            else:
                page, head_only = await self._answer(reader)
            writer.write(_head(page) + (b"" if head_only else page.body))
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(writer.drain(), _REQUEST_SECONDS_MAX)
        except (OSError, asyncio.TimeoutError, EOFError, asyncio.LimitOverrunError):
            log.debug("a request for metrics broke off")
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[Page, bool]:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _REQUEST_SECONDS_MAX)
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


def _accepted(head: bytes) -> str:
    """What the Accept header says."""
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
