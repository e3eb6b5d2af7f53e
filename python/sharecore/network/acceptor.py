"""Accept connections of a listening socket within the limits on rate and number."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from sharecore.errors import listening_on
from sharecore.network.admission import TooManyConnections, has_descriptors
from sharecore.network.binding import bind_all
from sharecore.network.peer import Peer

log = logging.getLogger("sharecore.network")

_ACCEPTED_AT_ONCE = 100
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NO_ROOM_DELAY_S = 0.2
_KEPT_WAITING_MAX = 1000

_SAY_AGAIN_S = 60.0

Begin = Callable[[socket.socket, Peer, Callable[[], None]], None]
"""Takes an accepted socket, the address of its client, and a callback for its end."""


class Doorkeeper(Protocol):
    """Admission control; see `Admission`."""

    def on_room(self, room: Callable[[], None], /) -> None: ...
    def delay_ms(self, listener: str, /) -> int: ...
    def host_delay_ms(self, host: str, /) -> int: ...
    def has_room(self, listener: str, /) -> bool: ...
    def enter(self, listener: str, host: str, /) -> Callable[[], None]: ...
    def spare(self) -> bool: ...


class Acceptor:
    """Sockets of one listener.

    At a limit, it holds one connection and stops accepting: others wait in the operating system's backlog.

    Args:
        listener: the listener's name.
        admission: admission control.
        begin: called with each admitted connection.
    """

    def __init__(self, listener: str, admission: Doorkeeper, begin: Begin) -> None:
        self._listener = listener
        self._admission = admission
        self._begin = begin
        self._held: tuple[socket.socket, tuple[str, int]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._resting = False
        self._said_at_s = -_SAY_AGAIN_S
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}
        self.sockets: list[socket.socket] = []
        admission.on_room(self._look_at_held)

    async def bind(self, host: str | None, port: int, send_buffer_bytes: int = -1) -> None:
        """Bind every address of `host` that the machine has; raise OSError if one is not available.

        Args:
            host: an address, a name, or None for all addresses of the machine.
            port: the port; 0 for one chosen by the system.
            send_buffer_bytes: send buffer of each connection's socket; negative for the system's default.
        """
        loop = asyncio.get_running_loop()
        with listening_on(host, port):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            self.sockets = bind_all(found, send_buffer_bytes)

    def listen(self, backlog: int) -> None:
        """Start accepting connections; raise OSError if another process has started to listen in the
        meantime.
        """
        for listening in self.sockets:
            with listening_on(*listening.getsockname()[:2]):
                listening.listen(backlog)
        self._go_on()

    def close(self) -> None:
        """Stop listening, and close the held connection."""
        self._rest()
        if self._timer is not None:
            self._timer.cancel()
        if self._held is not None:
            self._held[0].close()
            self._held = None
        for peer, timer in self._refused.items():
            timer.cancel()
            peer.close()
        self._refused.clear()
        for listening in self.sockets:
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
                self._admission.spare()
                self._rest()
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_NO_ROOM_DELAY_S, self._time_up)
                if loop.time() - self._said_at_s >= _SAY_AGAIN_S:
                    self._said_at_s = loop.time()
                    log.error("listener %s cannot accept connections; retrying: %s", self._listener, error)
                return
            is_last = not has_descriptors()
            self._arrive(peer, address)
            if self._resting or is_last:
                return  # connections closed to free descriptors are gone in the next turn of the loop

    def _arrive(self, peer: socket.socket, address: tuple[str, int]) -> None:
        peer.setblocking(False)
        delay_ms = self._admission.delay_ms(self._listener)
        if not delay_ms and self._admission.has_room(self._listener):
            self._let_in(peer, address)
            return
        self._held = peer, address
        self._rest()
        if delay_ms:
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._time_up)

    def _time_up(self) -> None:
        self._timer = None
        self._look_at_held()

    def _look_at_held(self) -> None:
        """Admit the held connection once its delay is over and a slot is free, and resume accepting."""
        if not self._resting or self._timer is not None or not self.sockets:
            return
        if self._held is not None:
            if not self._admission.has_room(self._listener):
                return
            (peer, address), self._held = self._held, None
            self._let_in(peer, address)
        self._go_on()

    def _let_in(self, peer: socket.socket, address: tuple[str, int]) -> None:
        client = Peer(str(address[0]), int(address[1]))
        delay_ms = self._admission.host_delay_ms(client.host)
        if delay_ms:
            log.debug("refusing %s: its address exceeds connection_creation_rate", client)
            self._refuse(peer, delay_ms)
            return
        try:
            leave = self._admission.enter(self._listener, client.host)
        except TooManyConnections as error:
            log.warning("refusing %s: %s", client, error)
            peer.close()
            return
        with suppress(OSError):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._begin(peer, client, leave)

    def _refuse(self, peer: socket.socket, delay_ms: int) -> None:
        """Close a connection after a delay, so that the client does not reconnect at once."""

        def close() -> None:
            del self._refused[peer]
            peer.close()

        if len(self._refused) >= _KEPT_WAITING_MAX or not has_descriptors():
            peer.close()
        else:
            self._refused[peer] = asyncio.get_running_loop().call_later(delay_ms / 1000, close)

    def _rest(self) -> None:
        self._resting = True
        loop = asyncio.get_running_loop()
        for listening in self.sockets:
            if listening.fileno() >= 0:
                loop.remove_reader(listening)

    def _go_on(self) -> None:
        self._resting = False
        loop = asyncio.get_running_loop()
        for listening in self.sockets:
            loop.add_reader(listening, self._accept, listening)
