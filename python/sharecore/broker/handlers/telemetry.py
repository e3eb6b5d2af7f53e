"""Client metrics (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext
from sharecore.metrics.telemetry.instances import COMPRESSIONS

if TYPE_CHECKING:
    from sharecore.protocol import messages


def get_telemetry_subscriptions(
    context: RequestContext, request: messages.GetTelemetrySubscriptionsRequest
) -> messages.GetTelemetrySubscriptionsResponse:
    """Return the metrics that a client shall push, and the interval in milliseconds (KIP-714)."""
    telemetry = context.broker.telemetry
    assert telemetry is not None, "it is offered"
    asked = telemetry.ask(context.connection, context.client_id, request)
    return {
        "client_instance_id": asked.instance_id,
        "subscription_id": asked.subscription_id,
        "accepted_compression_types": bytes(COMPRESSIONS),
        "push_interval_ms": asked.interval_ms,
        "telemetry_max_bytes": telemetry.bytes_max,
        "delta_temporality": True,
        "requested_metrics": asked.metrics,
    }


def push_telemetry(
    context: RequestContext, request: messages.PushTelemetryRequest
) -> messages.PushTelemetryResponse:
    """Store metrics of a client (KIP-714); raise KafkaError if the push is refused."""
    telemetry = context.broker.telemetry
    assert telemetry is not None, "it is offered"
    telemetry.push(context.connection, context.client_id, request)
    return {}
