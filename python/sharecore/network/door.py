"""The way in to a small server beside Kafka's listeners: few connections, and never the last descriptors."""

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

log = logging.getLogger("sharecore.network")

_HANDSHAKE_MS_MAX = 10_000


class Visitor(Attached, Protocol):
    """The protocol of one connection."""

    @property
    def is_idle(self) -> bool:
        """Whether the connection is made and no request is being answered: it may be closed to make room."""

    def abort(self) -> None:
        """Close the connection at once."""


class Door:
    """Accepts connections of a small server.

    Where there are as many as there may be, the oldest that is idle is closed for a new one: so nobody keeps
    others out by doing nothing. Where none is idle, the new one is closed.

    Args:
        name: of the listener, for the log.
        connections_max: how many may be open; returned anew for each.
        make: makes the protocol of a connection.
        tls: keys and certificates, where it encrypts.
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
        """How many connections are open, with those whose handshake is under way."""
        return self._few.total

    async def bind(self, host: str | None, port: int) -> int:
        """Take an address; return the port, which the system chose if `port` is 0.

        Raises:
            OSError: the address cannot be had.
        """
        await self._acceptor.bind(host, port)
        bound: int = self._acceptor.sockets[0].getsockname()[1]
        return bound

    def take(self, listening: socket) -> None:
        """Take a socket that has an address already."""
        listening.setblocking(False)
        self._acceptor.sockets.append(listening)

    def listen(self, backlog: int = 128) -> None:
        """Let connections in from now on."""
        self._acceptor.listen(backlog)

    def close(self) -> None:
        """Let nobody in any more; those that are in stay."""
        self._acceptor.close()
        self._handshakes.abort()

    def _begin(self, peer: socket, address: str, leave: Callable[[], None]) -> None:
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
            if done.cancelled():  # perhaps before it began
                peer.close()
                left()

        task.add_done_callback(begun)

    def _make_room(self) -> bool:
        for visitor in self._visitors:
            if visitor.is_idle:
                del self._visitors[visitor]
                visitor.abort()
                return True
        for task in self._beginning:  # many have come at once
            del self._beginning[task]
            task.cancel()
            return True
        return self._handshakes.give_up_oldest("others come in")


class _Few:
    """Who may come in: so many, as long as the broker has descriptors to spare."""

    def __init__(self, connections_max: Callable[[], int], make_room: Callable[[], bool]) -> None:
        self._connections_max = connections_max
        self._make_room = make_room
        self.total = 0

    def on_room(self, room: Callable[[], None]) -> None:
        """Nobody waits for room."""

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
        log.debug("a connection has gone before it began: %s", error)
