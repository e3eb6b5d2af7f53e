"""Connections in memory: bytes take their time, come in pieces, stop, and are lost with their connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tests.simulation.loop import SimulatedLoop

_WINDOW_BYTES = 64 << 10
_NEVER_S = 40.0


class Tap(Protocol):
    """Sees the bytes of a connection at the end of the one who listens."""

    def opened(self, link: End) -> None: ...
    def received(self, link: End, data: bytes) -> None: ...
    def sent(self, link: End, data: bytes) -> None: ...
    def closed(self, link: End) -> None: ...


@dataclass
class Weather:
    """How a network behaves.

    Args:
        delay_s: the longest that bytes are mostly under way.
        slow: share of pieces that take twenty times as long.
        pieces: share of writes that arrive in pieces, some of them byte by byte.
        silent: share of ends of which the other side hears nothing (half-open connections).
    """

    delay_s: float = 0.002
    slow: float = 0.0
    pieces: float = 0.0
    silent: float = 0.0


class End(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: Network, number: int, address: tuple[str, int], context: Context) -> None:
        super().__init__()
        self.number = number
        self.address = address
        self.context = context
        self.protocol: Any = None
        self.other: End = self
        self.tap: Tap | None = None
        self.closed = False
        self.lost = False
        self._network = network
        self._loop = network.loop
        self._under_way: deque[bytes | None] = deque()
        self._arrives_at = 0.0
        self._unread: deque[bytes] = deque()
        self._reading = True
        self._stalled = 0
        self._unacknowledged = 0
        self._full = False
        self._high = _WINDOW_BYTES

    # asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.other.address if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _WINDOW_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        return max(0, self._unacknowledged - _WINDOW_BYTES)

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: Any) -> None:
        if self.closed:
            return
        data = bytes(data)
        if self.tap is not None:
            self.tap.sent(self, data)
        if not data:
            return
        for piece in self._network.pieces(data):
            self._send(piece)
        self._unacknowledged += len(data)
        if not self._full and self.get_write_buffer_size() > self._high:
            self._full = True
            self.protocol.pause_writing()

    def writelines(self, parts: Iterable[Any]) -> None:
        self.write(b"".join(parts))

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._loop.call_soon(self._read, context=self.context)

    def close(self) -> None:
        """Ends the connection behind what was written."""
        if not self.closed:
            self.closed = True
            self._send(None)
            self._loop.call_soon(self._lose, None, context=self.context)

    def abort(self) -> None:
        self.cut(silent=False)

    # faults

    def cut(self, *, silent: bool) -> None:
        """Ends the connection now; the other side hears of it later, or `silent`ly not for long."""
        if self.lost:
            return
        self.closed = True
        self._under_way.clear()
        self._loop.call_soon(self._lose, ConnectionResetError("cut"), context=self.context)
        self.vanish(silent=silent)

    def vanish(self, *, silent: bool) -> None:
        """This side is gone; the other one finds out."""
        other = self.other
        delay = _NEVER_S if silent else self._network.delay()
        self._loop.call_later(delay, other._lose, ConnectionResetError("reset"), context=other.context)

    def stall(self, seconds: float) -> None:
        """This side reads nothing for a while."""
        self._stalled += 1
        self._loop.call_later(seconds, self._go_on, context=self.context)

    def _go_on(self) -> None:
        self._stalled -= 1
        self._read()

    def _send(self, piece: bytes | None) -> None:
        self._under_way.append(piece)
        self._arrives_at = max(self._arrives_at, self._loop.now + self._network.delay())
        self._loop.call_at(self._arrives_at, self._arrived, context=self.other.context)

    def _arrived(self) -> None:
        """The next piece of what was sent is at the other end; runs there."""
        if not self._under_way:
            return
        piece, other = self._under_way.popleft(), self.other
        if other.lost or other.closed:
            if piece is not None and not self.lost:
                # a sender learns that its peer is gone
                self._loop.call_later(
                    self._network.delay(), self._lose, ConnectionResetError("reset"), context=self.context
                )
            return
        if piece is None:
            other._read()
            other._lose(None)
            return
        other._unread.append(piece)
        other._read()

    def _read(self) -> None:
        if self.protocol is None:
            return
        while self._reading and not self._stalled and self._unread and not self.lost and not self.closed:
            piece = self._unread.popleft()
            if self.tap is not None:
                self.tap.received(self, piece)
            commits = getattr(getattr(self.protocol, "_server", None), "commits", None)
            if commits is None:
                self.protocol.data_received(piece)
            else:  # as `Sockets` does
                commits.turn(1, partial(self.protocol.data_received, piece))
            sender = self.other
            if sender._full:
                self._loop.call_soon(sender._acknowledged, len(piece), context=sender.context)
            else:
                sender._unacknowledged -= len(piece)

    def _acknowledged(self, size: int) -> None:
        self._unacknowledged -= size
        if self._full and not self.closed and self.get_write_buffer_size() <= self._high // 4:
            self._full = False
            self.protocol.resume_writing()

    def _lose(self, error: Exception | None) -> None:
        if not self.lost:
            self.lost = self.closed = True
            self._network.ends.pop(self.number, None)
            if self.tap is not None:
                self.tap.closed(self)
            if self.protocol is not None:
                self.protocol.connection_lost(error)


class Peer:
    """A connection that was accepted, before something speaks on it: what a socket would be."""

    def __init__(self, end: End) -> None:
        self.end = end

    def setblocking(self, flag: bool) -> None:
        """Nothing here blocks."""

    def setsockopt(self, *_: object) -> None:
        """Nothing here has options."""

    def close(self) -> None:
        self.end.cut(silent=False)


class Listening:
    """A listening socket."""

    def __init__(self, network: Network, *_: object) -> None:
        self._network = network
        self.context = copy_context()
        self.backlog: deque[Peer] = deque()
        self.address = "10.0.0.1", 0

    def setblocking(self, flag: bool) -> None:
        """Nothing here blocks."""

    def setsockopt(self, *_: object) -> None:
        """Nothing here has options."""

    def bind(self, address: tuple[str, int]) -> None:
        self.address = "10.0.0.1", address[1]

    def listen(self, backlog: int) -> None:
        self._network.listeners[self.address[1]] = self

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def fileno(self) -> int:
        return self.address[1]

    def accept(self) -> tuple[Peer, tuple[str, int]]:
        if not self.backlog:
            raise BlockingIOError
        peer = self.backlog.popleft()
        return peer, peer.end.other.address

    def close(self) -> None:
        if self._network.listeners.get(self.address[1]) is self:
            del self._network.listeners[self.address[1]]


class Network:
    """All connections of a simulation.

    Args:
        tap: sees what the listening side gets and sends.
    """

    def __init__(self, loop: SimulatedLoop, weather: Weather, tap: Tap | None = None) -> None:
        self.loop = loop
        self.weather = weather
        self.listeners: dict[int, Listening] = {}
        self.ends: dict[int, End] = {}
        self._tap = tap
        self._number = 0

    def delay(self) -> float:
        random, weather = self.loop.random, self.weather
        delay = random.uniform(0, weather.delay_s)
        return delay * 20 if weather.slow and random.random() < weather.slow else delay

    def pieces(self, data: bytes) -> list[bytes]:
        """What of a write arrives at a time."""
        random = self.loop.random
        if len(data) < 2 or random.random() >= self.weather.pieces:
            return [data]
        if len(data) < 200 and random.random() < 0.2:
            return [data[i : i + 1] for i in range(len(data))]
        cut = random.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    async def open(self, factory: Callable[[], Any], port: int) -> tuple[End, Any]:
        """Connects; raises ConnectionRefusedError where nobody listens."""
        await asyncio.sleep(self.delay())
        listening = self.listeners.get(port)
        if listening is None:
            raise ConnectionRefusedError(f"nobody listens at port {port}")
        self._number += 2
        number = self._number
        near = End(self, number, ("10.0.1.1", number), copy_context())
        far = End(self, number + 1, ("10.0.0.1", port), listening.context)
        near.other, far.other = far, near
        near.protocol = factory()
        self.ends[number], self.ends[number + 1] = near, far
        near.protocol.connection_made(near)
        listening.backlog.append(Peer(far))
        self.loop.readable(listening)
        return near, near.protocol

    def begin(self, factory: Callable[[], Any], peer: Peer) -> tuple[End, Any]:
        """Has a protocol speak on a connection that was accepted; raises OSError when it is gone."""
        end = peer.end
        if end.lost:
            raise ConnectionResetError("the client has gone")
        end.protocol = factory()
        end.tap = self._tap
        if end.tap is not None:
            end.tap.opened(end)
        end.protocol.connection_made(end)
        self.loop.call_soon(end._read, context=end.context)
        return end, end.protocol

    def power_failed(self, context_of: Callable[[End], bool]) -> None:
        """A machine is gone with its ends; the others find out, or not for long."""
        for end in list(self.ends.values()):
            if context_of(end):
                silent = self.loop.random.random() < self.weather.silent
                end.lost = end.closed = True
                self.ends.pop(end.number, None)
                if end.tap is not None:
                    end.tap.closed(end)
                end.vanish(silent=silent)
        self.listeners.clear()
