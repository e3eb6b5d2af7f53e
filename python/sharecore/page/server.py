"""Serves the page: uvicorn on a socket of ours, in an event loop that others use too."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sharecore.errors import listening_on
from sharecore.page.app import Page

_CONNECTIONS_MAX = 256
_HEAD_BYTES_MAX = 16 << 10
_SILENT_S = 15.0
_STOP_S = 2


class _Protocol(H11Protocol):
    """A connection that is closed where no request comes of it."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._timer = self.loop.call_later(_SILENT_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        # between two requests uvicorn counts the time itself
        if self.cycle is None or (self.cycle.response_complete and self.timeout_keep_alive_task is None):
            self.transport.close()
            return
        self._timer = self.loop.call_later(_SILENT_S, self._look)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's own."""
        yield


class PageServer:
    """A page on a socket.

    Args:
        page: what is served.
        listening: where; closed with the server.
        context: keys and certificates, where it encrypts.
    """

    def __init__(self, page: Page, listening: socket.socket, context: ssl.SSLContext | None = None) -> None:
        self._page = page
        self._listening = listening
        options: dict[str, Any] = {}
        if context is not None:
            options["ssl_context_factory"] = lambda *_: context
        self._server = _Server(
            uvicorn.Config(
                page.app,
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=_CONNECTIONS_MAX,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=_STOP_S,
                h11_max_incomplete_event_size=_HEAD_BYTES_MAX,
                **options,
            )
        )

    async def serve(self) -> None:
        """Serves until it is cancelled or stopped."""
        self._page.start()
        try:
            await self._server.serve([self._listening])
        finally:
            with suppress(OSError):
                self._listening.close()

    async def stop(self) -> None:
        """Ends streams, sessions, and then the server; `serve` returns."""
        await self._page.stop()
        self._server.should_exit = True


def listen(host: str | None, port: int) -> socket.socket:
    """A socket to serve on; raises OSError where the address cannot be had."""
    with listening_on(host, port):
        if host is None:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            return socket.create_server(
                ("", port), family=family, backlog=128, dualstack_ipv6=family == socket.AF_INET6
            )
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        kind, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=kind, backlog=128)
