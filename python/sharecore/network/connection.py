"""A client connection: request frames in, answers out in request order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from sharecore._core import AnswerBudget, Exchange, MemoryBudget, Pending
from sharecore.logs import LineLimit
from sharecore.network.disconnect import Disconnect
from sharecore.network.limits import Limits
from sharecore.network.peer import Peer
from sharecore.waiting import settle

log = logging.getLogger("sharecore.network")

_OTHER_PROTOCOL = "it speaks "
"""Prefix of the reason for a client of another protocol, which retries forever (wire/src/frame.rs)."""
_PAUSE_CLOSING, _PAUSE_THROTTLE, _PAUSE_HOLD = 8, 16, 32

Answer = list[bytes] | Pending | None
"""Result of a frame handler: buffers to send, a promise of them, or None for no answer."""


class Home(Protocol):
    """A connection's interface to its server."""

    on_frame: Callable[[Connection, bytes], Answer]
    on_open: Callable[[Connection], None]
    monotonic_ms: Callable[[], int]
    budget: MemoryBudget
    stranger_budget: MemoryBudget
    answers: AnswerBudget
    scratch: memoryview
    strangers: LineLimit

    def remember(self, connection: Connection) -> None:
        """Register a new connection."""

    @property
    def limits(self) -> Limits:
        """The limits."""

    def forget(self, connection: Connection) -> None:
        """Unregister a closed connection."""

    def seek_relief(self) -> None:
        """Free memory, as a connection waits for it."""


class Connection(Exchange, asyncio.BufferedProtocol):
    """Read requests, dispatch them one by one, and write their answers in order.

    Reading pauses while a request cannot be dispatched, while memory for the next one is short, and while the
    client does not read its answers. `_core.Exchange` implements frames, order and answers; this class
    implements the start and the end.

    Args:
        peer: address of the client.
    """

    def __init__(self, server: Home, connection_id: int, listener: str, peer: Peer) -> None:
        self.id = connection_id
        self.listener = listener
        self.peer_host, self.peer_port = peer
        self.client_software: tuple[str, str] = ("unknown", "unknown")
        self.principal: Any = None
        """The authenticated client; set by the layers above."""
        self._server = server
        self._limits = server.limits
        self._close_hooks: list[Callable[[], None]] = []
        self._throttled: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        return f"{self.peer_host}:{self.peer_port} (connection {self.id})"

    @property
    def is_adopted(self) -> bool:
        """Whether the client is part of this process, as the page is."""
        return self.peer_port == 0

    def on_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` once when the connection has closed; immediately if it has."""
        if self.closed:
            hook()
        else:
            self._close_hooks.append(hook)

    def close(self, reason: str = "") -> None:
        """Close the connection after pending writes; log `reason`, if any, as a warning."""
        if self._transport is None or self._transport.is_closing():
            return
        if reason:
            warns = not reason.startswith(_OTHER_PROTOCOL) or self._server.strangers.allows(self.peer_host)
            log.log(logging.WARNING if warns else logging.DEBUG, "closing %s: %s", self, reason)
        self._drop_backlog()
        self._send_rest()
        self._transport.close()

    def stop_reading(self) -> None:
        """Stop reading requests; dispatched ones are still answered."""
        self._drop_backlog()
        self._pause(_PAUSE_CLOSING)

    def throttle(self, milliseconds: int) -> None:
        """Pause reading for a while from now; dispatched requests are still answered."""
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
        """Charge memory to `owner` from now on: connections of an owner share its budget."""
        self.enter(self._server.budget, owner)

    def count_as_stranger(self) -> None:
        """Charge memory to the shared budget of unauthenticated clients."""
        self.enter(self._server.stranger_budget, self.peer_host)

    @property
    def is_closing(self) -> bool:
        """Whether the connection is closing."""
        return self._transport is None or bool(self._transport.is_closing())

    def limit_frames(self, bytes_max: int) -> None:
        """Close the connection if a later frame claims to be larger."""
        self.frame_bytes_max = bytes_max

    def certificate(self) -> bytes | None:
        """Return the client's verified certificate in DER; None without one."""
        tls = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        found: bytes | None = tls.getpeercert(True) if tls is not None else None
        return found

    @property
    def descriptor(self) -> int:
        """The file descriptor of its socket; -1 without one, such as after it was closed."""
        if self._transport is None:
            return -1
        own: Callable[[], int] | None = getattr(self._transport, "fileno", None)
        if own is not None:
            return own()
        found = self._transport.get_extra_info("socket")
        return -1 if found is None else int(found.fileno())

    def leave(self) -> None:
        """Close the connection after pending writes, without TLS's farewell if there are none."""
        if self._transport is None or self._transport.is_closing():
            return
        self._drop_backlog()
        self._send_rest()
        if self._transport.get_write_buffer_size():
            self._transport.close()
        else:
            self._transport.abort()

    def abort(self) -> None:
        """Close the connection immediately; unwritten answers are dropped."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not instances of asyncio's classes
        self._transport = transport = cast(asyncio.Transport, transport)
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
        """Hold later requests until `go_on`: they must not overtake the current one."""
        self._pause(_PAUSE_HOLD)

    def go_on(self) -> None:
        """Resume requests after `hold`."""
        self._resume(_PAUSE_HOLD)
        if not self.closed:
            self._pump_soon()

    # callbacks of the exchange

    def _pump_soon(self) -> None:
        """Dispatch waiting requests in another turn: the answer just sent has work of its own to finish."""
        asyncio.get_running_loop().call_soon(self._pump)

    def _send_soon(self) -> None:
        """Continue sending in another turn, so that others are served in between."""
        asyncio.get_running_loop().call_soon(self._send)

    def _wait_for_room(self) -> None:
        """Free memory for requests or answers, as others may hold it needlessly."""
        self._server.seek_relief()
