"""Listener of a small server beside Kafka's: few connections, and never the last descriptors."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from socket import socket
from typing import Protocol

from sharecore.network.acceptor import Acceptor
from sharecore.network.admission import TooManyConnections, has_descriptors
from sharecore.network.attach import Attached, attach
from sharecore.network.handshakes import Handshakes
from sharecore.network.peer import Peer

log = logging.getLogger("sharecore.network")

_HANDSHAKE_MS_MAX = 10_000


class Visitor(Attached, Protocol):
    """The protocol of one connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered, so that the connection may be closed for another one."""

    def abort(self) -> None:
        """Close the connection immediately."""


class Door:
    """Accept connections of a small server.

    At the limit, the oldest idle connection is closed for a new one, so that idle clients cannot keep others
    out. If none is idle, the new one is closed.

    Args:
        name: the listener's name, for the log.
        connections_max: returns the maximum number of connections.
        make: creates the protocol of a connection.
        tls: keys and certificates for a TLS listener.
    """

    def __init__(
        self,
        name: str,
        connections_max: Callable[[], int],
        make: Callable[[], Visitor],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._few = _Few(connections_max, self._make_room)
        self._make = make
        self._tls = tls
        self._visitors: dict[Visitor, None] = {}
        self._handshakes = Handshakes(_HANDSHAKE_MS_MAX, connections_max())
        self._acceptor = Acceptor(name, self._few, self._begin)
        self._beginning: dict[asyncio.Task[None], None] = {}

    @property
    def open(self) -> int:
        """Number of open connections, including handshakes."""
        return self._few.total

    async def bind(self, host: str | None, port: int) -> int:
        """Bind an address; return the port, chosen by the system if `port` is 0.

        Raises:
            OSError: the address is not available.
        """
        await self._acceptor.bind(host, port)
        bound: int = self._acceptor.sockets[0].getsockname()[1]
        return bound

    def take(self, listening: socket) -> None:
        """Adopt a socket that is already bound."""
        listening.setblocking(False)
        self._acceptor.sockets.append(listening)

    def listen(self, backlog: int = 128) -> None:
        """Start accepting connections."""
        self._acceptor.listen(backlog)

    def close(self) -> None:
        """Stop accepting connections; open ones stay."""
        self._acceptor.close()
        self._handshakes.abort()

    def _begin(self, peer: socket, address: Peer, leave: Callable[[], None]) -> None:
        made: list[Visitor] = []

        def make() -> Visitor:
            visitor = self._make()
            made.append(visitor)
            self._visitors[visitor] = None
            return visitor

        def left() -> None:
            for visitor in made:
                self._visitors.pop(visitor, None)
            leave()

        if self._tls is not None:
            self._handshakes.begin(peer, address, self._tls, make, left)
            return
        task = asyncio.get_running_loop().create_task(_attach(peer, make, left))
        self._beginning[task] = None

        def begun(done: asyncio.Task[None]) -> None:
            self._beginning.pop(done, None)
            if done.cancelled():  # cancelled, perhaps before it began
                peer.close()
                left()

        task.add_done_callback(begun)

    def _make_room(self) -> bool:
        for visitor in self._visitors:
            if visitor.is_idle:
                del self._visitors[visitor]
                visitor.abort()
                return True
        for task in self._beginning:  # many connections at once
            del self._beginning[task]
            task.cancel()
            return True
        return self._handshakes.give_up_oldest("others come in")


class _Few:
    """Admission control with a fixed limit, while the broker has descriptors to spare."""

    def __init__(self, connections_max: Callable[[], int], make_room: Callable[[], bool]) -> None:
        self._connections_max = connections_max
        self._make_room = make_room
        self.total = 0

    def on_room(self, room: Callable[[], None]) -> None:
        """Ignore the callback: no connection waits."""

    def delay_ms(self, listener: str) -> int:
        return 0

    def host_delay_ms(self, host: str) -> int:
        return 0

    def has_room(self, listener: str) -> bool:
        return True

    def spare(self) -> bool:
        return self._make_room()

    def enter(self, listener: str, host: str) -> Callable[[], None]:
        is_full = self.total >= self._connections_max() or not has_descriptors(for_few=True)
        if is_full and not self._make_room():
            raise TooManyConnections(f"{self.total} connections at {listener} are in use")
        self.total += 1
        inside = [True]

        def leave() -> None:
            if inside:
                inside.clear()
                self.total -= 1

        return leave


async def _attach(peer: socket, make: Callable[[], Visitor], leave: Callable[[], None]) -> None:
    try:
        await attach(peer, make, leave)
    except OSError as error:
        log.debug("a connection ended before it began: %s", error)
