"""TLS handshakes: each has a deadline, and there are only so many at a time."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecore.network.connection import Connection

log = logging.getLogger("sharecore.network")

_ACCEPTED_AT_ONCE = 100
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_ROOM_DELAY_S = 1.0

ContextSource = Callable[[], ssl.SSLContext]


class Handshakes:
    """The handshakes under way, on all listeners that encrypt.

    Where there are too many the oldest is given up: one that means well takes milliseconds, and so never is
    the oldest for long.

    Args:
        timeout_ms: a handshake that takes longer is given up.
        handshakes_max: how many may be under way.
    """

    def __init__(self, timeout_ms: int, handshakes_max: int) -> None:
        self.timeout_ms = timeout_ms
        self.handshakes_max = handshakes_max
        self._open: dict[asyncio.Task[None], str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self, peer: socket.socket, address: str, context: ssl.SSLContext, make: Callable[[], Connection]
    ) -> None:
        """Shakes hands with a client that was accepted.

        Args:
            peer: its socket.
            address: what the log calls it.
            context: keys and certificates.
            make: makes what speaks to it once the handshake has succeeded.
        """
        while len(self._open) >= self.handshakes_max:
            oldest = next(iter(self._open))
            given_up = self._open.pop(oldest)
            oldest.cancel()
            log.warning(
                "giving up the handshake of %s: %d are under way (sharecore.handshakes.max)",
                given_up,
                self.handshakes_max,
            )
        task = asyncio.get_running_loop().create_task(self._shake_hands(peer, address, context, make))
        self._open[task] = address
        task.add_done_callback(lambda done: self._open.pop(done, None))

    def abort(self) -> None:
        """Gives all of them up."""
        for task in self._open:
            task.cancel()
        self._open.clear()

    async def _shake_hands(
        self, peer: socket.socket, address: str, context: ssl.SSLContext, make: Callable[[], Connection]
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make, peer, ssl=context, ssl_handshake_timeout=self.timeout_ms / 1000
            )
        except OSError as error:  # ssl.SSLError is one
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            # who goes away at once has only looked whether somebody listens
            level = logging.DEBUG if isinstance(error, ConnectionResetError) else logging.WARNING
            log.log(level, "the TLS handshake of %s failed: %s", address, reason)
            peer.close()
        except asyncio.CancelledError:
            peer.close()
            raise


class TlsAcceptor:
    """Sockets that listen for clients who will encrypt; closes like an `asyncio.Server`.

    Args:
        handshakes: what their handshakes count among.
        source: gives the context, anew for each handshake, so that new certificates count at once.
        make: makes what speaks to a client.
    """

    def __init__(self, handshakes: Handshakes, source: ContextSource, make: Callable[[], Connection]) -> None:
        self._handshakes = handshakes
        self._source = source
        self._make = make
        self.sockets: list[socket.socket] = []

    async def listen(self, host: str | None, port: int, backlog: int) -> None:
        """Binds every address of `host`; raises OSError when one cannot be had."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                listening = socket.socket(family, kind, protocol)
                self.sockets.append(listening)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.setblocking(False)
                listening.bind(address)
                listening.listen(backlog)
        except OSError as error:
            self.close()
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
        for listening in self.sockets:
            loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Listens no more."""
        loop = asyncio.get_running_loop()
        for listening in self.sockets:
            if listening.fileno() >= 0:
                loop.remove_reader(listening)
                listening.close()
        self.sockets = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                peer, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                log.error("cannot accept connections for now: %s", error)
                self._rest(listening)
                return
            peer.setblocking(False)
            with suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._handshakes.begin(peer, f"{address[0]}:{address[1]}", self._source(), self._make)

    def _rest(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def go_on() -> None:
            if listening.fileno() >= 0:
                loop.add_reader(listening, self._accept, listening)

        loop.call_later(_NO_ROOM_DELAY_S, go_on)
