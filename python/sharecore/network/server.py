"""Listen, admit connections within the limits, and close idle ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from socket import socket, socketpair

from sharecore._core import AnswerBudget, MemoryBudget, Sockets, StoreEvents
from sharecore.clock import SystemClock
from sharecore.logs import once_a_minute
from sharecore.network.acceptor import Acceptor
from sharecore.network.admission import Admission
from sharecore.network.connection import Answer, Connection
from sharecore.network.handshakes import ContextSource, Handshakes
from sharecore.network.held import HeldSockets
from sharecore.network.limits import Limits
from sharecore.network.peer import Peer
from sharecore.network.relief import Relief

log = logging.getLogger("sharecore.network")

_SCRATCH_BYTES = 32 << 10
_STRANGER_SHARE, _STRANGER_BYTES_MIN = 16, 4 << 20
_CLOSING_MS = 30_000
"""A closing connection is aborted if its client has not read the rest after this time."""
_SWEEP_S_MIN, _SWEEP_S_MAX = 0.05, 30.0


class Server:
    """Accept connections and dispatch their frames to `on_frame`.

    Args:
        on_frame: called with the connection and a whole request frame; returns the answer (see `Answer`), or
            raises `Disconnect`.
        limits: the limits.
        on_open: called with each admitted connection before its first frame; raises `Disconnect`.
        rate_of: returns an address's connection rate limit in 1/s; None for no limit.
        monotonic_ms: the time.
    """

    def __init__(
        self,
        on_frame: Callable[[Connection, bytes], Answer],
        limits: Limits,
        on_open: Callable[[Connection], None] = lambda connection: None,
        rate_of: Callable[[str], float | None] = lambda host: None,
        monotonic_ms: Callable[[], int] = SystemClock.monotonic_ms,
    ) -> None:
        self.on_frame = on_frame
        self.on_open = on_open
        self._limits = limits
        self.monotonic_ms = monotonic_ms
        self.admission = Admission(lambda: self._limits, rate_of, monotonic_ms, self._close_silent)
        self.budget = MemoryBudget(limits.request_bytes_max)
        self.stranger_budget = MemoryBudget(_stranger_bytes(limits.request_bytes_max))
        """Budget for requests of unauthenticated clients."""
        self.answers = AnswerBudget(limits.answer_bytes_max)
        self.scratch = memoryview(bytearray(_SCRATCH_BYTES))
        """Shared read buffer for small requests: it is empty again before the next connection reads."""
        self.connections: dict[int, Connection] = {}
        self._relief = Relief(
            (self.budget, self.stranger_budget),
            self.answers,
            self.connections.values,
            monotonic_ms,
            stalled_ms=limits.stalled_ms_max,
            unread_ms=limits.unread_ms_max,
        )
        self.strangers = once_a_minute()
        """Limits log lines about clients of another protocol, per address."""
        self.handshakes = Handshakes(limits.handshake_ms_max, limits.handshakes_max)
        self._ids = count(1)
        self._listening: list[Acceptor] = []
        self._sockets: Sockets | None = None
        self.commits: StoreEvents | None = None
        """Of the store whose writes are committed in the turn that serves requests."""
        self._closing: dict[Connection, int] = {}
        """Closing connections, and the times when a sweep first saw them."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._all_gone: asyncio.Event | None = None

    @property
    def limits(self) -> Limits:
        """The limits; changes apply to new connections and requests."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self.admission.look_again()

    async def bind(
        self, host: str | None, port: int, listener: str, *, tls: ContextSource | None = None
    ) -> int:
        """Bind an address, refusing clients until `listen`; return the port, chosen by the system for 0.

        Args:
            host: an address, a name, or None for all addresses of the machine.
            port: the port.
            listener: the listener's name.
            tls: returns keys and certificates for each handshake of a TLS listener.

        Raises:
            OSError: the address is not available.
        """
        self._loop = asyncio.get_running_loop()

        def begin(peer: socket, address: Peer, leave: Callable[[], None]) -> None:
            def connection() -> Connection:
                return Connection(self, next(self._ids), listener, address)

            if tls is not None:
                self.handshakes.begin(peer, address, tls(), connection, leave)
                return
            made = connection()
            made.on_close(leave)
            try:
                self._start(peer, made)
            except OSError as error:
                log.debug("the connection of %s ended before it began: %s", address, error)
                peer.close()
                leave()

        listening = Acceptor(listener, self.admission, begin)
        await listening.bind(host, port, self._limits.send_buffer_bytes)
        self._listening.append(listening)
        bound: int = listening.sockets[0].getsockname()[1]
        return bound

    def listen(self, backlog: int = 511) -> None:
        """Start accepting clients at every bound address.

        Args:
            backlog: maximum unaccepted connections of an address.

        Raises:
            OSError: another process has started to listen at an address since it was bound.
        """
        for listening in self._listening:
            listening.listen(backlog)
        self._sweep()

    def _start(self, peer: socket, connection: Connection) -> None:
        """Serve a connected plaintext client; raise OSError if it has disconnected already."""
        loop = asyncio.get_running_loop()
        start: Callable[[socket, Connection], object] | None = getattr(loop, "start_connection", None)
        if start is not None:  # a simulated loop has no real sockets
            start(peer, connection)
            return
        if self._sockets is None:
            sockets = Sockets(loop, threads=self._limits.io_threads)
            sockets.commit_with(self.commits)
            loop.add_reader(sockets.fileno(), sockets.turn)
            self._sockets = sockets
        self._sockets.open(peer.detach(), connection)

    def commit_with(self, events: StoreEvents | None) -> None:
        """Have what requests write to a store committed in the turn that serves them, if that is quick.

        Args:
            events: of the store; None to leave all commits to the store's thread.
        """
        self.commits = events
        if self._sockets is not None:
            self._sockets.commit_with(events)

    async def adopt(self, listener: str, peer_host: str) -> socket:
        """Return the socket of a client within this process, connected in plaintext.

        Args:
            listener: name of the listener whose settings apply.
            peer_host: the address that the client counts as.
        """
        ours, theirs = socketpair()
        try:
            theirs.setblocking(False)
            made = Connection(self, next(self._ids), listener, Peer(peer_host))
            self._start(ours, made)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return theirs

    def remember(self, connection: Connection) -> None:
        """Register a new connection."""
        self.connections[connection.id] = connection

    def seek_relief(self) -> None:
        """Close connections that hold memory needlessly, as another one waits for it."""
        self._relief.look()

    def forget(self, connection: Connection) -> None:
        """Unregister a closed connection."""
        self.connections.pop(connection.id, None)
        if self._all_gone is not None and not self.connections:
            self._all_gone.set()

    def _close_silent(self) -> bool:
        """Close the oldest connection without a request; return whether there is one."""
        for connection in self.connections.values():
            if not connection.has_asked and not connection.is_closing:
                log.warning("closing %s: file descriptors run out, and it has sent no request", connection)
                connection.abort()
                return True
        return self.handshakes.give_up_oldest("descriptors run out")

    def stop_listening(self) -> None:
        """Stop accepting connections and requests; dispatched requests are still answered."""
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

    async def close(self, *, grace_s: float = 1.0, held: HeldSockets | None = None) -> None:
        """Close every connection, after at most `grace_s` for written answers to leave.

        Args:
            grace_s: how long to wait for them, in seconds.
            held: gets the sockets of clients that are not to notice yet; None if they may.
        """
        self.stop_listening()
        # one after the other: it takes no more descriptors than one
        for connection in list(self.connections.values()):
            if held is not None and not connection.is_closing and held.hold(connection):
                connection.leave()
            else:
                connection.close()
        try:
            if self.connections:
                self._all_gone = asyncio.Event()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._all_gone.wait(), grace_s)
        finally:
            for connection in list(self.connections.values()):
                connection.abort()
            if self._sockets is not None:
                asyncio.get_running_loop().remove_reader(self._sockets.fileno())
                self._sockets.close()
                self._sockets = None
        await asyncio.sleep(0)

    def _sweep(self) -> None:
        assert self._loop is not None
        now, idle_ms, sweep_s = self.monotonic_ms(), self.limits.idle_ms_max, _SWEEP_S_MAX
        closing = [connection for connection in self.connections.values() if connection.is_closing]
        self._closing = {connection: self._closing.get(connection, now) for connection in closing}
        for connection, since in self._closing.items():
            if now - since >= _CLOSING_MS:
                log.debug("aborting %s: its client does not read the rest", connection)
                connection.abort()
        if idle_ms >= 0:
            sweep_s = min(max(idle_ms / 4000, _SWEEP_S_MIN), _SWEEP_S_MAX)
            for connection in list(self.connections.values()):
                idle_since = connection.idle_since()
                if idle_since is not None and idle_since < now - idle_ms:
                    log.debug("closing %s: idle for %d ms (connections.max.idle.ms)", connection, idle_ms)
                    connection.close()
        self._sweeper = self._loop.call_later(sweep_s, self._sweep)


def _stranger_bytes(request_bytes_max: int) -> int:
    """Return the budget of unauthenticated clients: a sixteenth of the request memory, or a minimum."""
    share = max(request_bytes_max // _STRANGER_SHARE, _STRANGER_BYTES_MIN)
    return share if request_bytes_max >= 0 else _STRANGER_BYTES_MIN


log = logging.getLogger("sharecore.network")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the event-loop factory: uvloop's if installed, else asyncio's, which is slower."""
    try:
        import uvloop
    except ImportError:
        log.info("uvloop is not installed: using asyncio's slower event loop")
        return asyncio.new_event_loop
    return uvloop.new_event_loop
