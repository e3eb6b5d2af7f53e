"""Connections between sites that may lose sight of each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Protocol

from tests.simulation.loop import SimulatedLoop, process_of
from tests.simulation.network import End, Listening, Network, Peer, Tap, Weather

_LOOK_AGAIN_S = 0.1
CLIENTS = "clients"


def site_of(context: Context) -> str:
    """Where something runs: a broker, a node, or with the clients."""
    process = process_of(context)
    return CLIENTS if process is None else process.name


class Accepting(Protocol):
    """Who takes connections without a socket: a broker of the simulated cluster."""

    site: str
    context: Context

    def accept(self) -> Any:
        """The protocol of a new connection."""


class TierEnd(End):
    """One end of a connection, which may pass a border."""

    net: TierNetwork

    @property
    def parted(self) -> bool:
        """Nothing gets through now."""
        return self.net.parted(site_of(self.context), site_of(self.other.context))

    def _arrived(self) -> None:
        if self.parted:
            # it is sent again until it arrives
            self._loop.call_later(_LOOK_AGAIN_S, self._arrived, context=self.other.context)
        else:
            super()._arrived()

    def vanish(self, *, silent: bool) -> None:
        super().vanish(silent=silent or self.parted)


class TierNetwork(Network):
    """All connections: those of clients to nodes, and those of nodes to brokers.

    Attributes:
        brokers: by port.
    """

    def __init__(self, loop: SimulatedLoop, weather: Weather, tap: Tap) -> None:
        super().__init__(loop, weather, tap)
        self.brokers: dict[int, Accepting] = {}
        self.sites: dict[int, str] = {}
        self._borders: set[tuple[str, str]] = set()

    def parted(self, one: str, other: str) -> bool:
        """Whether two sites cannot see each other."""
        return bool(self._borders) and ((one, other) in self._borders or (other, one) in self._borders)

    def part(self, one: str, other: str) -> None:
        """From now on two sites cannot see each other."""
        self._borders.add((one, other))

    def join(self) -> None:
        """All sites see each other again."""
        self._borders.clear()

    async def open(self, factory: Callable[[], Any], port: int) -> tuple[End, Any]:
        here = copy_context()
        await asyncio.sleep(self.delay())
        while self.parted(site_of(here), self.sites.get(port, "")):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN_S)
        called = self.brokers.get(port) or self.listeners.get(port)
        if called is None:
            raise ConnectionRefusedError(f"nobody listens at port {port}")
        self._number += 2
        number = self._number
        there = called.context
        near = TierEnd(self, number, ("10.0.1.1", number), here)
        far = TierEnd(self, number + 1, ("10.0.0.1", port), there)
        near.net = far.net = self
        near.other, far.other = far, near
        near.protocol = factory()
        self.ends[number], self.ends[number + 1] = near, far
        near.protocol.connection_made(near)
        if isinstance(called, Listening):
            called.backlog.append(Peer(far))
            self.loop.readable(called)
        else:
            far.protocol = called.accept()
            there.run(far.protocol.connection_made, far)
        return near, near.protocol

    def ended(self, site: str) -> None:
        """A process is gone with its ends and its listeners; the others find out, or not for long."""
        for port, listening in list(self.listeners.items()):
            if site_of(listening.context) == site:
                del self.listeners[port]
                self.loop.readers.pop(listening, None)
        for end in list(self.ends.values()):
            if site_of(end.context) == site:
                silent = self.loop.random.random() < self.weather.silent
                end.lost = end.closed = True
                self.ends.pop(end.number, None)
                if end.tap is not None:
                    end.tap.closed(end)
                end.vanish(silent=silent)

    def cut(self, end: End, *, silent: bool) -> None:
        """One connection ends."""
        end.context.run(partial(end.cut, silent=silent))
