"""Listens, admits connections within the limits, and closes the idle ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from socket import socket, socketpair

from sharecore._core import AnswerBudget, MemoryBudget
from sharecore.logs import once_a_minute
from sharecore.network.acceptor import Acceptor
from sharecore.network.admission import Admission
from sharecore.network.attach import attach
from sharecore.network.connection import Answer, Connection
from sharecore.network.handshakes import ContextSource, Handshakes
from sharecore.network.limits import Limits
from sharecore.network.relief import Relief

log = logging.getLogger("sharecore.network")

_SCRATCH_BYTES = 32 << 10
_STRANGER_SHARE, _STRANGER_BYTES_MIN = 16, 4 << 20


class Server:
    """Accepts connections and hands their frames to `on_frame`.

    Args:
        on_frame: called with the connection and a whole request frame; returns the answer (see `Answer`), or
            raises `Disconnect`.
        limits: the bounds.
        on_open: called with each connection that was admitted, before its first frame; raises `Disconnect`.
        rate_of: tells how many connections a second an address may open; None for any number.
    """

    def __init__(
        self,
        on_frame: Callable[[Connection, bytes], Answer],
        limits: Limits,
        on_open: Callable[[Connection], None] = lambda connection: None,
        rate_of: Callable[[str], float | None] = lambda host: None,
    ) -> None:
        self.on_frame = on_frame
        self.on_open = on_open
        self._limits = limits
        self.admission = Admission(
            lambda: self._limits, rate_of, lambda: self.now() * 1000, self._close_silent
        )
        self.budget = MemoryBudget(limits.request_bytes_max)
        self.stranger_budget = MemoryBudget(_stranger_bytes(limits.request_bytes_max))
        """For requests of clients that have not said who they are."""
        self.answers = AnswerBudget(limits.answer_bytes_max)
        self.scratch = memoryview(bytearray(_SCRATCH_BYTES))
        """What every connection reads small requests into: it is empty again before the next one reads."""
        self.connections: dict[int, Connection] = {}
        self._relief = Relief(
            (self.budget, self.stranger_budget),
            self.answers,
            self.connections.values,
            stalled_ms=limits.stalled_ms_max,
            unread_ms=limits.unread_ms_max,
        )
        self.strangers = once_a_minute()
        """Lines about clients of another protocol, by their address."""
        self.handshakes = Handshakes(limits.handshake_ms_max, limits.handshakes_max)
        self._ids = count(1)
        self._listening: list[Acceptor] = []
        self._beginning: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._all_gone: asyncio.Event | None = None
        self.now: Callable[[], float] = lambda: 0.0

    @property
    def limits(self) -> Limits:
        """The bounds; new ones count from the next connection and the next request on."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self.admission.look_again()

    async def bind(
        self, host: str | None, port: int, listener: str, *, tls: ContextSource | None = None
    ) -> int:
        """Take an address, where clients are refused until `listen`; return the port, which the system
        chose if `port` is 0.

        Args:
            host: an address, a name, or None for every address of the machine.
            port: the port.
            listener: name that its connections carry.
            tls: returns keys and certificates for each handshake, for a listener that encrypts.

        Raises:
            OSError: the address cannot be had.
        """
        self._loop = loop = asyncio.get_running_loop()
        self.now = loop.time

        def connection() -> Connection:
            return Connection(self, next(self._ids), listener)

        def begin(peer: socket, address: str, leave: Callable[[], None]) -> None:
            if tls is not None:
                self.handshakes.begin(peer, address, tls(), connection, leave)
                return
            task = loop.create_task(_begin(peer, connection, leave))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

        listening = Acceptor(listener, self.admission, begin)
        await listening.bind(host, port, self._limits.send_buffer_bytes)
        self._listening.append(listening)
        bound: int = listening.sockets[0].getsockname()[1]
        return bound

    def listen(self, backlog: int = 511) -> None:
        """Lets clients in at every address that is bound.

        Args:
            backlog: connections of an address that may wait to be accepted.

        Raises:
            OSError: another has begun to listen at an address since it was bound.
        """
        for listening in self._listening:
            listening.listen(backlog)
        self._sweep()

    async def adopt(self, listener: str, peer_host: str) -> socket:
        """Return a client within this process: its end of a connection in the clear.

        Args:
            listener: name of a listener, on whose terms the client is served.
            peer_host: the address that the client acts for.
        """
        ours, theirs = socketpair()
        try:
            ours.setblocking(False)
            theirs.setblocking(False)
            await attach(ours, lambda: Connection(self, next(self._ids), listener, peer_host), _nobody)
        except BaseException:
            theirs.close()
            raise
        return theirs

    def remember(self, connection: Connection) -> None:
        """Called by a connection that has come in."""
        self.connections[connection.id] = connection

    def seek_relief(self) -> None:
        """A connection waits for memory: close those that keep it without need."""
        self._relief.look()

    def forget(self, connection: Connection) -> None:
        """Called by a connection that is gone."""
        self.connections.pop(connection.id, None)
        if self._all_gone is not None and not self.connections:
            self._all_gone.set()

    def _close_silent(self) -> bool:
        """Close the oldest connection that has asked for nothing yet; return whether there is one."""
        for connection in self.connections.values():
            if not connection.has_asked and not connection.is_closing:
                log.warning("closing %s, which has asked for nothing: descriptors run out", connection)
                connection.abort()
                return True
        return self.handshakes.give_up_oldest("descriptors run out")

    def stop_listening(self) -> None:
        """No new connections and no new requests from now on; those under way are still answered."""
        for connection in self.connections.values():
            connection.stop_reading()
        for listening in self._listening:
            listening.close()
        self._listening.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._relief.stop()
        self.handshakes.abort()

    async def close(self, *, grace_s: float = 1.0) -> None:
        """End every connection, and let answers that are written leave for at most `grace_s` before."""
        self.stop_listening()
        for connection in list(self.connections.values()):
            connection.close()
        if self.connections:
            self._all_gone = asyncio.Event()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), grace_s)
        for connection in list(self.connections.values()):
            connection.abort()
        await asyncio.sleep(0)

    def _sweep(self) -> None:
        assert self._loop is not None
        idle_s = self.limits.idle_ms_max / 1000
        if self.limits.idle_ms_max >= 0:
            oldest = self.now() - idle_s
            for connection in list(self.connections.values()):
                since = connection.idle_since()
                if since is not None and since < oldest:
                    log.debug("closing %s: idle for %.0f s (connections.max.idle.ms)", connection, idle_s)
                    connection.close()
        self._sweeper = self._loop.call_later(min(max(idle_s / 4, 0.05), 30.0), self._sweep)


def _stranger_bytes(request_bytes_max: int) -> int:
    """Return a sixteenth of all memory for requests, and where that has no bound, one all the same."""
    share = max(request_bytes_max // _STRANGER_SHARE, _STRANGER_BYTES_MIN)
    return share if request_bytes_max >= 0 else _STRANGER_BYTES_MIN


def _nobody() -> None:
    """An adopted client was never counted."""


async def _begin(peer: socket, make: Callable[[], Connection], leave: Callable[[], None]) -> None:
    """Begins with a client that was accepted in the clear."""
    try:
        await attach(peer, make, leave)
    except OSError as error:
        log.debug("a connection has gone before it began: %s", error)
