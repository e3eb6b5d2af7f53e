"""Serves the page: uvicorn on a socket of ours, in an event loop that others use too."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sharecore.errors import listening_on
from sharecore.network.binding import bind_first
from sharecore.network.door import Door
from sharecore.page.app import Page
from sharecore.page.settings import PageLimits

_STOP_S = 2


class _Protocol(H11Protocol):
    """A connection that is closed if no complete request arrives."""

    silent_s = 15.0
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._hooks: list[Callable[[], None]] = []

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being answered: no request has come, or not the end of one, or no other yet.

        A connection without a transport is not idle: it is still being made.
        """
        is_answering = self.cycle is not None and not (self.cycle.response_complete or self.cycle.more_body)
        return self.transport is not None and not is_answering

    def on_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` once when the connection is gone."""
        self._hooks.append(hook)

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._timer = self.loop.call_later(self.silent_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook()

    def _look(self) -> None:
        # between two requests, uvicorn's own timer runs
        if self.is_idle and self.timeout_keep_alive_task is None:
            self.transport.close()
            return
        self._timer = self.loop.call_later(self.silent_s, self._look)


class _Server(uvicorn.Server):
    """uvicorn behind a door of ours: its own takes any number of connections.

    Args:
        listening: where it serves.
        tls: keys and certificates, where it encrypts.
    """

    def __init__(
        self, config: uvicorn.Config, listening: socket.socket, limits: PageLimits, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(config)
        self._listening = listening
        self._limits = limits
        self._door = Door("of the page", lambda: limits.connections_max, self._protocol, tls)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's own."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Let browsers in."""
        await self.lifespan.startup()
        self.servers = []
        self._door.take(self._listening)
        self._door.listen()
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and close the open ones."""
        self._door.close()
        await super().shutdown(sockets)

    def _protocol(self) -> _Protocol:
        protocol = _Protocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=asyncio.get_running_loop(),
        )
        protocol.silent_s = self._limits.request_ms_max / 1000
        return protocol


class PageServer:
    """A page on a socket.

    Args:
        page: what is served.
        listening: where; closed with the server.
        context: keys and certificates, where it encrypts.
        limits: bounds of its connections.
    """

    def __init__(
        self,
        page: Page,
        listening: socket.socket,
        context: ssl.SSLContext | None = None,
        limits: PageLimits | None = None,
    ) -> None:
        self._page = page
        self._listening = listening
        limits = limits or PageLimits()
        config = uvicorn.Config(
            page.app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=_STOP_S,
            h11_max_incomplete_event_size=limits.head_bytes_max,
        )
        self._server = _Server(config, listening, limits, context)

    async def serve(self) -> None:
        """Serve until it is cancelled or stopped."""
        self._page.start()
        try:
            await self._server.serve()
        finally:
            with suppress(OSError):
                self._listening.close()

    async def stop(self) -> None:
        """End streams, sessions, and then the server; `serve` returns."""
        await self._page.stop()
        self._server.should_exit = True


def listen(host: str | None, port: int) -> socket.socket:
    """Return a socket to serve on; raise OSError if the address is not available."""
    with listening_on(host, port):
        if host is None:
            family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
            return socket.create_server(
                ("", port), family=family, backlog=128, dualstack_ipv6=family == socket.AF_INET6
            )
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listening = bind_first(found)
        listening.listen(128)
        return listening
