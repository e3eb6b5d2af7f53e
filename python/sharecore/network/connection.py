"""One client's connection: frames in, answers out in the order of the requests."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast, final

from sharecore._core import Framer
from sharecore.network.budget import MemoryBudget
from sharecore.network.limits import Limits
from sharecore.waiting import Later, settle

log = logging.getLogger("sharecore.network")

_SIZE_BYTES = 4
_PAUSE_PIPELINE, _PAUSE_MEMORY, _PAUSE_WRITE, _PAUSE_CLOSING, _PAUSE_THROTTLE = 1, 2, 4, 8, 16
_NOT_HANDED_ON = _PAUSE_WRITE | _PAUSE_THROTTLE


class Disconnect(Exception):
    """Raised by a request handler: this connection must be closed, for the reason given."""


@final
@dataclass(slots=True)
class Pending:
    """An answer that is not known yet.

    Args:
        future: what the handler waits for; it belongs to the connection, which cancels it when the client
            goes.
        finish: turns the future, when it is done, into buffers to send, or None when nothing is to be
            answered.
    """

    future: Later[Any] | asyncio.Future[Any]
    finish: Callable[[Any], list[bytes] | None]


Answer = list[bytes] | Pending | None
"""What a frame handler returns: buffers to send, a promise of them, or None when there is no answer."""


class _Slot:
    """A request that has been handed on; answers leave in the order of the slots."""

    __slots__ = ("close_reason", "connection", "parts", "pending", "ready", "request_bytes")

    def __init__(self, connection: Connection, request_bytes: int) -> None:
        self.connection = connection
        self.request_bytes = request_bytes
        self.ready = False
        self.parts: list[bytes] | None = None
        self.pending: Pending | None = None
        self.close_reason = ""

    def done(self, future: Any) -> None:
        """What it waited for is there."""
        pending, self.pending = self.pending, None
        if pending is not None:
            self.connection.finished(self, future, pending.finish)


class Home(Protocol):
    """What a connection needs of the server that has accepted it."""

    on_frame: Callable[[Connection, bytes], Answer]
    on_open: Callable[[Connection], None]
    now: Callable[[], float]
    budget: MemoryBudget

    def remember(self, connection: Connection) -> None:
        """The connection has begun."""

    @property
    def limits(self) -> Limits:
        """The bounds."""

    def forget(self, connection: Connection) -> None:
        """The connection has ended."""

    def seek_relief(self) -> None:
        """A connection found the memory for requests exhausted."""


class Connection(asyncio.Protocol):
    """Reads requests, hands them on one by one, and writes their answers in order.

    Reading stops while too many requests wait for their answers, while the memory budget is exhausted, and
    while the client does not read what it is sent.

    Args:
        peer_host: address of the client, where its socket does not tell.
    """

    def __init__(self, server: Home, connection_id: int, listener: str, peer_host: str | None = None) -> None:
        self.id = connection_id
        self.listener = listener
        self._peer_host = peer_host
        self.peer_host = ""
        self.peer_port = 0
        self.closed = False
        self.client_software: tuple[str, str] = ("unknown", "unknown")
        self.principal: Any = None
        """Who the client is; the rooms above set it."""
        self.on_frame = server.on_frame
        """What its frames go to; another handler stands here until the client has said who it is."""
        self._server = server
        self._limits = server.limits
        self._budget = server.budget
        self._framer = Framer(server.limits.frame_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._slots: deque[_Slot] = deque()
        self._backlog: deque[bytes] = deque()
        self._paused = 0
        self._pumping = False
        self._beyond_budget = False
        self.held_bytes = 0
        """Bytes that were read from this client and belong to requests that are not answered yet."""
        self._close_hooks: list[Callable[[], None]] = []
        self._throttled: asyncio.TimerHandle | None = None
        self._active_at = server.now()

    def __str__(self) -> str:
        return f"{self.peer_host}:{self.peer_port} (connection {self.id})"

    @property
    def in_flight(self) -> int:
        """Requests that were handed on and are not answered yet."""
        return len(self._slots)

    def on_close(self, hook: Callable[[], None]) -> None:
        """Calls `hook` once when the connection is gone, at once if it already is."""
        if self.closed:
            hook()
        else:
            self._close_hooks.append(hook)

    def off_close(self, hook: Callable[[], None]) -> None:
        """Removes a hook; one that is not registered is passed over."""
        if hook in self._close_hooks:
            self._close_hooks.remove(hook)

    def close(self, reason: str = "") -> None:
        """Closes the connection after what has been written; `reason` is logged as a warning when it is
        given.
        """
        if self._transport is None or self._transport.is_closing():
            return
        if reason:
            log.warning("closing %s: %s", self, reason)
        self._drop_backlog()
        self._transport.close()

    def stop_reading(self) -> None:
        """Takes no more requests; those that were handed on are still answered."""
        self._drop_backlog()
        self._pause(_PAUSE_CLOSING)

    def throttle(self, milliseconds: int) -> None:
        """Reads no request for a while, beginning now; those handed on are still answered."""
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

    def read_beyond_budget(self) -> None:
        """Reads on, though memory for requests is exhausted, until its request is whole."""
        self._beyond_budget = True
        self._budget.withdraw(self._room)
        self._resume(_PAUSE_MEMORY)

    def limit_frames(self, bytes_max: int) -> None:
        """Closes the connection when a frame from now on claims to be larger."""
        self._framer.frame_bytes_max = bytes_max

    def certificate(self) -> bytes | None:
        """The client's certificate in DER, checked in the handshake; None when it showed none."""
        tls = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        found: bytes | None = tls.getpeercert(True) if tls is not None else None
        return found

    def abort(self) -> None:
        """Closes the connection at once; answers that are not written yet are dropped."""
        if self._transport is not None:
            self._transport.abort()

    def idle_since(self) -> float | None:
        """The moment of the last byte in either direction, or None while a request waits for its answer."""
        return None if self._slots else self._active_at

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not instances of asyncio's classes
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        if self._peer_host is None:
            self.peer_host, self.peer_port = str(peer[0]), int(peer[1])
        else:
            self.peer_host = self._peer_host
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
        self._budget.withdraw(self._room)
        hooks, self._close_hooks = self._close_hooks, []
        settle(hooks)
        slots, self._slots = self._slots, deque()
        self._drop_backlog()
        for slot in slots:
            if slot.pending is not None:
                slot.pending.future.cancel()
        held, self.held_bytes = self.held_bytes, 0
        self._budget.release(held)

    def data_received(self, data: bytes) -> None:
        self._active_at = self._server.now()
        self.held_bytes += len(data)
        self._budget.take(len(data))
        try:
            self._backlog.extend(self._framer.feed(data))
        except ValueError as error:
            self.close(str(error))
            return
        self._pump()
        # who holds nothing may go on: small requests get through whatever others keep back
        if not self.held_bytes:
            self._beyond_budget = False
        elif self._budget.exhausted and not self._beyond_budget and not self._paused & _PAUSE_MEMORY:
            self._pause(_PAUSE_MEMORY)
            self._budget.wait(self._room)
            self._server.seek_relief()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._pause(_PAUSE_WRITE)

    def resume_writing(self) -> None:
        self._resume(_PAUSE_WRITE)
        self._pump()

    # the way of a request

    def _pump(self) -> None:
        """Hands on what has been read, as far as the pipeline has room."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while (
                self._backlog
                and len(self._slots) < self._limits.pipeline_max
                and not self._paused & _NOT_HANDED_ON
            ):
                self._hand_on(self._backlog.popleft())
        finally:
            self._pumping = False
        if len(self._slots) >= self._limits.pipeline_max:
            self._pause(_PAUSE_PIPELINE)
        elif not self._backlog:
            self._resume(_PAUSE_PIPELINE)

    def _hand_on(self, frame: bytes) -> None:
        try:
            answer = self.on_frame(self, frame)
        except Disconnect as error:
            self._free(len(frame))
            self._close_after_answers(str(error))
            return
        if type(answer) is Pending:
            slot = _Slot(self, len(frame))
            self._slots.append(slot)
            slot.pending = answer
            answer.future.add_done_callback(slot.done)
        elif self._slots:
            slot = _Slot(self, len(frame))
            slot.ready, slot.parts = True, answer
            self._slots.append(slot)
        else:
            self._free(len(frame))
            if answer is not None:
                self._write(answer)

    def finished(self, slot: _Slot, future: Any, finish: Callable[[Any], list[bytes] | None]) -> None:
        """The answer of a slot is there; for the slot alone."""
        if self.closed:
            return
        try:
            slot.parts = None if future.cancelled() else finish(future)
        except Disconnect as error:
            self.close(str(error))
            return
        slot.ready = True
        self._answer_in_order()

    def _answer_in_order(self) -> None:
        while self._slots and self._slots[0].ready:
            slot = self._slots.popleft()
            self._free(slot.request_bytes)
            if slot.close_reason:
                self.close(slot.close_reason)
            elif slot.parts is not None:
                self._write(slot.parts)
        if self._backlog:
            # in a turn of its own: what calls here has work of its own to end
            asyncio.get_running_loop().call_soon(self._pump)
        elif self._paused & _PAUSE_PIPELINE:
            self._pump()

    def _close_after_answers(self, reason: str) -> None:
        """A request is bad: those before it are still answered, nothing after it is read."""
        self._drop_backlog()
        if not self._slots:
            self.close(reason)
            return
        slot = _Slot(self, -_SIZE_BYTES)
        slot.ready, slot.close_reason = True, reason
        self._slots.append(slot)
        self._pause(_PAUSE_CLOSING)

    def _drop_backlog(self) -> None:
        while self._backlog:
            self._free(len(self._backlog.popleft()))

    def _free(self, frame_bytes: int) -> None:
        """A request is answered, or will not be."""
        if not self.closed:
            self.held_bytes -= frame_bytes + _SIZE_BYTES
            self._budget.release(frame_bytes + _SIZE_BYTES)

    def _write(self, parts: list[bytes]) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._active_at = self._server.now()
        if len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)

    # pausing

    def _room(self) -> None:
        """The memory budget has room again."""
        self._resume(_PAUSE_MEMORY)

    def _pause(self, reason: int) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._paused |= reason

    def _resume(self, reason: int) -> None:
        if not self._paused & reason:
            return
        self._paused &= ~reason
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
