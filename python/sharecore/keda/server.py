"""Serve `externalscaler.ExternalScaler` over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn, Protocol, TypeVar

import grpc

from sharecore.errors import ErrorCode, KafkaError
from sharecore.keda import messages
from sharecore.keda.messages import MessageClass, MetricsRequest, Response, ScaledObject
from sharecore.keda.scaler import Scaler, Trigger, TriggerError
from sharecore.logs import once_a_minute

log = logging.getLogger("sharecore.keda")

_REFUSED = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
}
_CALLS_MAX = 1_000
Value = TypeVar("Value")
Request = TypeVar("Request")


class Context(Protocol):
    """The call that a handler answers."""

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End the call with an error."""


class ExternalScaler:
    """Implementation of the service.

    Args:
        scaler: computes the lag.
        interval_s: how often open streams check for a change, in seconds.
    """

    def __init__(self, scaler: Scaler, interval_s: float) -> None:
        self._scaler = scaler
        self._interval_s = interval_s
        self._failures = once_a_minute()

    async def is_active(self, request: ScaledObject, context: Context) -> Response:
        """Return whether the group has records, so that KEDA scales from zero."""
        trigger = await self._trigger(request, context)
        active = await self._answer(self._scaler.is_active, trigger, context)
        return messages.IsActiveResponse(result=active)

    async def stream_is_active(self, request: ScaledObject, context: Context) -> AsyncIterator[Response]:
        """Send the current state, then every change of it."""
        trigger = await self._trigger(request, context)
        sent: bool | None = None
        while True:
            try:
                active = await self._scaler.is_active(trigger)
            except (KafkaError, OSError) as error:
                # keep the stream open during an outage, so that the last state stays in effect
                self._note(trigger, error)
            else:
                if active is not sent:
                    sent = active
                    yield messages.IsActiveResponse(result=active)
            await asyncio.sleep(self._interval_s)

    async def metric_spec(self, request: ScaledObject, context: Context) -> Response:
        """Return the metric of a trigger with its target: records per worker."""
        trigger = await self._trigger(request, context)
        spec = {
            "metricName": trigger.metric,
            "targetSize": max(1, round(trigger.lag_threshold)),
            "targetSizeFloat": trigger.lag_threshold,
        }
        return messages.GetMetricSpecResponse(metricSpecs=[spec])

    async def metrics(self, request: MetricsRequest, context: Context) -> Response:
        """Return the number of records for which KEDA scales."""
        trigger = await self._trigger(request.scaledObjectRef, context)
        records = await self._answer(self._scaler.records, trigger, context)
        value = {
            "metricName": request.metricName or trigger.metric,
            "metricValue": round(records),
            "metricValueFloat": records,
        }
        return messages.GetMetricsResponse(metricValues=[value])

    async def _trigger(self, request: ScaledObject, context: Context) -> Trigger:
        try:
            return Trigger.read(dict(request.scalerMetadata))
        except TriggerError as error:
            where = f"{request.namespace}/{request.name}"
            if self._failures.allows(where):
                log.warning("ScaledObject %s: %s", where, error)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _answer(
        self, ask: Callable[[Trigger], Awaitable[Value]], trigger: Trigger, context: Context
    ) -> Value:
        try:
            return await ask(trigger)
        except (KafkaError, OSError) as error:
            self._note(trigger, error)
            refused = isinstance(error, KafkaError) and error.code in _REFUSED
            status = grpc.StatusCode.PERMISSION_DENIED if refused else grpc.StatusCode.UNAVAILABLE
            await context.abort(status, str(error))

    def _note(self, trigger: Trigger, error: Exception) -> None:
        if self._failures.allows(trigger.group):
            log.warning("group %s: %s", trigger.group, error)

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the gRPC handlers of the service."""

        def one(
            call: Callable[[Request, Context], Awaitable[Response]], request: MessageClass[Request]
        ) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(call, request.FromString, _serialize)

        reference = messages.ScaledObjectRef
        return grpc.method_handlers_generic_handler(
            messages.SERVICE,
            {
                "IsActive": one(self.is_active, reference),
                "StreamIsActive": grpc.unary_stream_rpc_method_handler(
                    self.stream_is_active, reference.FromString, _serialize
                ),
                "GetMetricSpec": one(self.metric_spec, reference),
                "GetMetrics": one(self.metrics, messages.GetMetricsRequest),
            },
        )


def _serialize(response: Response) -> bytes:
    return response.SerializeToString()


async def start(
    scaler: ExternalScaler, address: str, certificate: tuple[bytes, bytes] | None = None
) -> tuple[grpc.aio.Server, int]:
    """Start the server; return it with its port.

    Args:
        address: HOST:PORT; port 0 for a free one.
        certificate: chain and private key in PEM, for TLS.

    Raises:
        OSError: the address cannot be bound, or the certificate is invalid.
    """
    server = grpc.aio.server(maximum_concurrent_rpcs=_CALLS_MAX, options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((scaler.handlers(),))
    try:
        if certificate is None:
            port = server.add_insecure_port(address)
        else:
            chain, key = certificate
            port = server.add_secure_port(address, grpc.ssl_server_credentials([(key, chain)]))
    except (RuntimeError, ValueError) as error:
        raise OSError(f"cannot listen on {address}: {error}") from None
    if not port:
        raise OSError(f"cannot listen on {address}")
    await server.start()
    return server, port
