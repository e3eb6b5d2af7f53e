"""The brokers of a cluster, and the connections to them."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping
from functools import partial
from typing import Generic, Protocol, TypeVar

from sharecore.client.errors import Disconnected
from sharecore.client.settings import ConnectionSettings
from sharecore.client.wire.apis import VERSIONS
from sharecore.client.wire.connection import Connection, Dial
from sharecore.client.wire.security import ssl_context
from sharecore.protocol import ApiKey

_SHARED = ("any", "coordinator")
"""Purposes of connections on which no request waits long."""

AnySettings = TypeVar("AnySettings", bound=ConnectionSettings)


class Watch(Protocol):
    """Observes connections and request times."""

    def connected(self) -> None:
        """Record a new connection."""

    def answered(self, node: str, seconds: float) -> None:
        """Record a broker's response; `node` is its ID, -1 if unknown yet."""


class Brokers(Generic[AnySettings]):
    """Connections by broker and purpose: a waiting request blocks all later ones on its connection.

    Args:
        settings: how to connect.
        versions: the supported APIs, with their lowest and highest version.
        dial: opens all connections, whatever the brokers' addresses.
    """

    def __init__(
        self,
        settings: AnySettings,
        versions: Mapping[ApiKey, tuple[int, int]] = VERSIONS,
        dial: Dial | None = None,
    ) -> None:
        self.settings = settings
        self._dial = dial
        self._versions = versions
        self._context = ssl_context(settings)
        self._nodes: dict[int, tuple[str, int]] = {}
        self._connections: dict[str, Connection] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._bootstrap = itertools.cycle(settings.bootstrap_servers)
        self._closed = False
        self.watch: Watch | None = None

    async def connect(self, node: int, purpose: str = "data") -> Connection:
        """Return the open connection to a broker, opening it if need be.

        Raises:
            Disconnected: the broker is unknown or cannot be reached.
            AuthenticationFailed: it refused the credentials.
        """
        if node not in self._nodes:
            raise Disconnected(f"broker {node} is not known")
        host, port = self._nodes[node]
        return await self._connect(f"{purpose} {node}", host, port)

    async def _connect(self, name: str, host: str, port: int) -> Connection:
        connection = self._connections.get(name)
        if connection is not None and not connection.closed:
            return connection
        async with self._opening.setdefault(name, asyncio.Lock()):
            connection = self._connections.get(name)
            if connection is None or connection.closed:
                if self._closed:
                    raise Disconnected("the client is closed")
                connection = await Connection.open(
                    host, port, self.settings, self._context, self._versions, self._dial
                )
                self._connections[name] = connection
                if self.watch is not None:
                    node = name.rpartition(" ")[2]
                    self.watch.connected()
                    connection.on_answer = partial(self.watch.answered, node if node.isdecimal() else "-1")
        return connection

    @property
    def nodes(self) -> list[int]:
        """The brokers in the last metadata."""
        return list(self._nodes)

    async def any_connection(self) -> Connection:
        """Return an open connection to any responding broker; raise Disconnected if there is none.

        A broker missing from the metadata redirects its clients, and is not used.
        """
        known = list(self._nodes.values())
        named = {f"{host}:{port}" for host, port in known}
        for name, connection in self._connections.items():
            is_named = not named or connection.address in named
            if name.startswith(_SHARED) and is_named and not connection.closed:
                return connection
        error = Disconnected("no broker is known")
        random.shuffle(known)
        tried = known + [next(self._bootstrap) for _ in self.settings.bootstrap_servers]
        for host, port in dict.fromkeys(tried):
            try:
                return await self._connect(f"any {host}:{port}", host, port)
            except Disconnected as refusal:  # noqa: PERF203
                error = refusal
        raise error

    async def close(self) -> None:
        """End all connections."""
        self._closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        # transports notify their protocols in the next turn of the loop
        await asyncio.sleep(0)
