"""Client metrics (KIP-714): subscriptions from dynamic configurations, pushes into the metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sharecore.config.client_metrics import ClientMetricsConfig
from sharecore.errors import ErrorCode
from sharecore.metrics import families as f
from sharecore.metrics.telemetry.instances import Asked, Client, Instances, kept_ms
from sharecore.metrics.telemetry.otlp import read_push
from sharecore.metrics.telemetry.series import PushedSeries
from sharecore.storage import Configs, ResourceType

if TYPE_CHECKING:
    from sharecore.config import BrokerConfig
    from sharecore.metrics.exposition import Exposition, Lines
    from sharecore.network import Connection
    from sharecore.protocol import messages

_EXPANDED = 8
"""Maximum expansion of a push, relative to its size limit."""
_CLIENT_CHARACTERS_MAX = 255


class ClientTelemetry:
    """Subscriptions and pushed metrics of clients.

    Args:
        config: the broker's initial configuration.
        configs: stores subscriptions.
        now_ms: the clock.
    """

    def __init__(self, config: BrokerConfig, configs: Configs, now_ms: Callable[[], int]) -> None:
        clients_max = config.sharecore_telemetry_instances_max
        self.bytes_max = config.telemetry_max_bytes
        self._configs = configs
        self._instances = Instances(now_ms, clients_max)
        self._series = PushedSeries(
            now_ms,
            clients_max=clients_max,
            series_max=config.sharecore_telemetry_series_max,
            client_series_max=config.sharecore_telemetry_client_series_max,
        )
        self._connections: set[int] = set()
        configs.on_change(self._changed)
        for name in configs.names(ResourceType.CLIENT_METRICS):
            self._changed(ResourceType.CLIENT_METRICS, name)

    def ask(
        self,
        connection: Connection,
        client_id: str | None,
        request: messages.GetTelemetrySubscriptionsRequest,
    ) -> Asked:
        """Return a client's subscription; raise KafkaError if it asks too soon."""
        client = _client(connection, client_id)
        return self._instances.ask(request.client_instance_id, client, self._follow(connection))

    def push(
        self, connection: Connection, client_id: str | None, request: messages.PushTelemetryRequest
    ) -> None:
        """Store a push; raise KafkaError if it is refused."""
        client = _client(connection, client_id)
        self._instances.push(
            request.client_instance_id,
            client,
            self._follow(connection),
            subscription_id=request.subscription_id,
            compression=request.compression_type,
            terminating=request.terminating,
            too_large=len(request.metrics) > self.bytes_max,
            receive=partial(self._receive, request, client),
        )

    def report(self, sheet: Exposition, lines: Lines) -> None:
        """Add the pushed metrics."""
        self._instances.forget_silent()
        sheet.add(f.CLIENT_INSTANCES, len(self._instances))
        errors = self._instances.errors
        sheet.add(f.CLIENT_UNKNOWN, errors[ErrorCode.UNKNOWN_SUBSCRIPTION_ID])
        for code in {ErrorCode.NONE, *errors}:
            sheet.add(f.CLIENT_PUSHES, errors[code], code.name)
        self._series.report(sheet, lines)

    def _receive(self, request: messages.PushTelemetryRequest, client: Client, asked: Asked) -> None:
        assert request.client_instance_id is not None  # refused before
        if request.metrics:
            pushed = read_push(bytes(request.metrics), request.compression_type, self.bytes_max * _EXPANDED)
            self._series.take(request.client_instance_id, client, pushed, kept_ms(asked.interval_ms))

    def _follow(self, connection: Connection) -> int:
        """Return the id of a client's connection; the client is forgotten when it closes."""
        if connection.id not in self._connections:
            self._connections.add(connection.id)
            connection.on_close(partial(self._gone, connection.id))
        return connection.id

    def _gone(self, connection: int) -> None:
        self._connections.discard(connection)
        self._instances.disconnected(connection)

    def _changed(self, kind: ResourceType, name: str) -> None:
        if kind == ResourceType.CLIENT_METRICS:
            settings = self._configs.get(kind, name)
            self._instances.subscribe(name, ClientMetricsConfig.parse(settings) if settings else None)


def _client(connection: Connection, client_id: str | None) -> Client:
    texts = (client_id or "", *connection.client_software, connection.peer_host, str(connection.peer_port))
    # remembered while the client pushes: clients choose the length
    return Client(*(text[:_CLIENT_CHARACTERS_MAX] for text in texts))
