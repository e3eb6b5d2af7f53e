"""PushTelemetry: metrics of a client (KIP-714)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    telemetry = context.broker.telemetry
    assert telemetry is not None, "it is offered"
    telemetry.push(context.connection, context.client_id, request)
    return {}
