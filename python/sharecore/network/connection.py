"""One client's connection: frames in, answers out in the order of the requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from sharecore._core import AnswerBudget, Exchange, MemoryBudget, Pending
from sharecore.logs import LineLimit
from sharecore.network.disconnect import Disconnect
from sharecore.network.limits import Limits
from sharecore.waiting import settle

log = logging.getLogger("sharecore.network")

_OTHER_PROTOCOL = "it speaks "
"""How the reason begins for a client of another protocol, which tries again and again (wire/src/frame.rs)."""
_PAUSE_CLOSING, _PAUSE_THROTTLE, _PAUSE_HOLD = 8, 16, 32

Answer = list[bytes] | Pending | None
"""What a frame handler returns: buffers to send, a promise of them, or None when there is no answer."""


class Home(Protocol):
    """What a connection needs of the server that has accepted it."""

    on_frame: Callable[[Connection, bytes], Answer]
    on_open: Callable[[Connection], None]
    now: Callable[[], float]
    budget: MemoryBudget
    stranger_budget: MemoryBudget
    answers: AnswerBudget
    scratch: memoryview
    strangers: LineLimit

    def remember(self, connection: Connection) -> None:
        """The connection has begun."""

    @property
    def limits(self) -> Limits:
        """The bounds."""

    def forget(self, connection: Connection) -> None:
        """The connection has ended."""

    def seek_relief(self) -> None:
        """A connection waits for memory."""


class Connection(Exchange, asyncio.BufferedProtocol):
    """Reads requests, hands them on one by one, and writes their answers in order.

    Reading stops while a request cannot be handed on, while there is no room in memory for the next one, and
    while the client does not read what it is sent. The way of a request, its frame, place and answer, is
    `_core.Exchange`; what is here begins and ends.

    Args:
        peer_host: address of the client, where its socket does not tell.
    """

    def __init__(self, server: Home, connection_id: int, listener: str, peer_host: str | None = None) -> None:
        self.id = connection_id
        self.listener = listener
        self._peer_host = peer_host
        self.peer_host = ""
        self.peer_port = 0
        self.client_software: tuple[str, str] = ("unknown", "unknown")
        self.principal: Any = None
        """Who the client is; the rooms above set it."""
        self._server = server
        self._limits = server.limits
        self._close_hooks: list[Callable[[], None]] = []
        self._throttled: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        return f"{self.peer_host}:{self.peer_port} (connection {self.id})"

    def on_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` once when the connection is gone, at once if it already is."""
        if self.closed:
            hook()
        else:
            self._close_hooks.append(hook)

    def close(self, reason: str = "") -> None:
        """Close the connection after what has been written; `reason` is logged as a warning when it is
        given.
        """
        if self._transport is None or self._transport.is_closing():
            return
        if reason:
            is_told = not reason.startswith(_OTHER_PROTOCOL) or self._server.strangers.allows(self.peer_host)
            log.log(logging.WARNING if is_told else logging.DEBUG, "closing %s: %s", self, reason)
        self._drop_backlog()
        self._send_rest()
        self._transport.close()

    def stop_reading(self) -> None:
        """Take no more requests; those that were handed on are still answered."""
        self._drop_backlog()
        self._pause(_PAUSE_CLOSING)

    def throttle(self, milliseconds: int) -> None:
        """Read no request for a while, beginning now; those handed on are still answered."""
        loop = asyncio.get_running_loop()
        until = loop.time() + milliseconds / 1000
        if self._throttled is not None:
            if self._throttled.when() >= until:
                return
            self._throttled.cancel()
        self._throttled = loop.call_at(until, self._go_on)
        self._pause(_PAUSE_THROTTLE)

    def _go_on(self) -> None:
        self._throttled = None
        self._resume(_PAUSE_THROTTLE)
        self._pump()

    def count_as(self, owner: str) -> None:
        """Take memory as `owner` from now on: connections of one share what it may have."""
        self.enter(self._server.budget, owner)

    def count_as_stranger(self) -> None:
        """Take memory for requests of what clients share that have not said who they are."""
        self.enter(self._server.stranger_budget, self.peer_host)

    @property
    def is_closing(self) -> bool:
        """Whether the connection is about to end."""
        return self._transport is None or bool(self._transport.is_closing())

    def limit_frames(self, bytes_max: int) -> None:
        """Close the connection when a frame from now on claims to be larger."""
        self.frame_bytes_max = bytes_max

    def certificate(self) -> bytes | None:
        """Return the client's certificate in DER, checked in the handshake; None when it showed none."""
        tls = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        found: bytes | None = tls.getpeercert(True) if tls is not None else None
        return found

    def abort(self) -> None:
        """Close the connection at once; answers that are not written yet are dropped."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not instances of asyncio's classes
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        if self._peer_host is None:
            self.peer_host, self.peer_port = str(peer[0]), int(peer[1])
        else:
            self.peer_host = self._peer_host
        self.count_as(self.peer_host)
        transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes_max)
        self._server.remember(self)
        try:
            self._server.on_open(self)
        except Disconnect as error:
            log.warning("refusing %s: %s", self, error)
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._throttled is not None:
            self._throttled.cancel()
        self._server.forget(self)
        hooks, self._close_hooks = self._close_hooks, []
        settle(hooks)
        for future in self._end():
            future.cancel()

    def eof_received(self) -> bool:
        return False

    def hold(self) -> None:
        """Begin no later request until `go_on`: one is being worked on that others must not overtake."""
        self._pause(_PAUSE_HOLD)

    def go_on(self) -> None:
        """End what `hold` began."""
        self._resume(_PAUSE_HOLD)
        if not self.closed:
            self._pump_soon()

    # what the exchange asks for

    def _pump_soon(self) -> None:
        """Hands on what waits, in another turn: what has been answered here has work of its own to end."""
        asyncio.get_running_loop().call_soon(self._pump)

    def _send_soon(self) -> None:
        """Send on in another turn: others are served in between."""
        asyncio.get_running_loop().call_soon(self._send)

    def _wait_for_room(self) -> None:
        """It waits for memory, of requests or of answers; others may keep it without need."""
        self._server.seek_relief()
