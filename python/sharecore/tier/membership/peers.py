"""Requests to the other nodes of the tier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sharecore.broker.cluster import Node
from sharecore.client.settings import ConnectionSettings, read_connection_settings
from sharecore.client.wire.brokers import Brokers
from sharecore.client.wire.connection import Connection
from sharecore.config import BrokerConfig, Listener
from sharecore.config.tier import INTER_NODE_PREFIX
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey
from sharecore.protocol.calls import Call

Response = TypeVar("Response")

_VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.SASL_HANDSHAKE: (1, 1),
    ApiKey.SASL_AUTHENTICATE: (1, 2),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 0),
    ApiKey.DELETE_SHARE_GROUP_STATE: (0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1),
}
_DEFAULTS = {
    "client.id": "sharecore-tier",
    "request.timeout.ms": "10000",
    "default.api.timeout.ms": "20000",
    "socket.connection.setup.timeout.ms": "5000",
}
"""Connection defaults: the slot of a killed node has another owner well within 20 seconds."""


def inter_node_listener(config: BrokerConfig, listeners: Iterable[Listener]) -> Listener:
    """Return the listener for requests between nodes.

    Raises:
        ConfigError: no listener has that name.
    """
    known = {listener.name: listener for listener in listeners}
    name = config.sharecore_tier_inter_node_listener_name
    if name is None:
        return next(iter(known.values()))
    if name.upper() not in known:
        raise ConfigError(
            f"{INTER_NODE_PREFIX}listener.name={name}: no such listener; allowed: one of {', '.join(known)}"
        )
    return known[name.upper()]


def inter_node_settings(config: BrokerConfig, listener: Listener) -> ConnectionSettings:
    """Return the settings for connections between nodes.

    Raises:
        ConfigError: a setting is invalid, or one required by the listener is missing.
    """
    given = _DEFAULTS | {"security.protocol": listener.protocol} | dict(config.inter_node_settings)
    try:
        # the addresses come from the tier itself
        return read_connection_settings(given | {"bootstrap.servers": "localhost:1"})
    except ConfigError as error:
        raise ConfigError(
            f"{INTER_NODE_PREFIX}*: nodes connect to each other at listener {listener.name} "
            f"({listener.protocol}): {error}"
        ) from error


class _Connections(Brokers[ConnectionSettings]):
    """Connections to nodes."""

    def know(self, nodes: Mapping[int, Node]) -> None:
        self._nodes = {node.node_id: (node.host, node.port) for node in nodes.values()}


class Peers:
    """Connections to the other nodes, opened on demand.

    Args:
        settings: how to connect.
        nodes: returns the addresses of live nodes.
    """

    def __init__(self, settings: ConnectionSettings, nodes: Callable[[], Mapping[int, Node]]) -> None:
        self.settings = settings
        self._nodes = nodes
        self._connections = _Connections(settings, _VERSIONS)

    async def ask(
        self, node: int, call: Call[Response], message: dict[str, object], check: Callable[[], None]
    ) -> Response:
        """Return the answer of a node.

        Args:
            check: called just before the request is sent; an exception cancels it.

        Raises:
            KafkaError: the node cannot be reached, or refuses this one.
        """
        self._connections.know(self._nodes())
        connection: Connection = await self._connections.connect(node)
        if not connection.ready:
            await connection.prepare()
        check()
        return await connection.request(call, message)

    async def close(self) -> None:
        """End all connections."""
        await self._connections.close()
