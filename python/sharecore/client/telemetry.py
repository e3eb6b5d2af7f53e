"""Pushes a client's metrics to the cluster, if it collects them (KIP-714)."""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.client.errors import AuthenticationFailed
from sharecore.client.metrics import MetricName
from sharecore.client.pushed import Pushes
from sharecore.client.wire.brokers import AnySettings
from sharecore.client.wire.cluster import Backoff, Cluster
from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls

if TYPE_CHECKING:
    from sharecore.protocol.received import GetTelemetrySubscriptionsResponse

logger = logging.getLogger(__name__)

_NONE, _GZIP = 0, 1
_FIRST_PUSH = (0.5, 1.5)
"""The first push comes after a random multiple of the interval, so that clients do not push at once."""
_UNASKED_SECONDS = 300.0
"""A broker that collects no metrics is asked again after this time."""
_ASK_ANEW = {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
_NEXT_TIME = {ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.TELEMETRY_TOO_LARGE}


class Telemetry:
    """A client's side of KIP-714.

    Args:
        cluster: receives the metrics.
        read: returns the current metrics.
        about: attributes of the client.
    """

    def __init__(
        self,
        cluster: Cluster[AnySettings],
        read: Callable[[], Mapping[MetricName, float]],
        about: Mapping[str, str | None],
    ) -> None:
        self._cluster = cluster
        self._read = read
        self._pushes = Pushes(about, time.time_ns())
        self._asked: GetTelemetrySubscriptionsResponse | None = None
        self._id: UUID | None = None
        self._known = asyncio.Event()
        self._refused: KafkaError | None = None

    async def instance_id(self) -> UUID:
        """Return the ID that the cluster assigns to this client, once it has.

        Raises:
            KafkaError: UNSUPPORTED_VERSION: the cluster assigns none.
        """
        await self._known.wait()
        if self._id is None:
            assert self._refused is not None
            raise self._refused
        return self._id

    async def run(self) -> None:
        """Ask and push until cancelled, or the cluster ends it."""
        settings = self._cluster.settings
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        while True:
            try:
                seconds = await self._step()
                backoff.reset()
            except AuthenticationFailed:
                return  # other users of the cluster report its failure
            except KafkaError as error:
                logger.debug("telemetry: %s", error)
                seconds = backoff.seconds()
            if seconds is None:
                return
            await asyncio.sleep(seconds)

    async def finish(self) -> None:
        """Push for the last time; raise KafkaError if that fails."""
        if self._asked is not None and self._asked.requested_metrics:
            await self._push(await self._cluster.any_connection(), terminating=True)

    async def _step(self) -> float | None:
        """Ask or push; return the seconds until the next time, None to end."""
        connection = await self._cluster.any_connection()
        if not connection.offers(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS):
            self._refuse(f"{connection.address} assigns no client IDs, as it does not collect client metrics")
            return _UNASKED_SECONDS
        if self._asked is None or not self._asked.requested_metrics:
            return await self._ask(connection)
        return await self._push(connection, terminating=False)

    async def _ask(self, connection: Connection) -> float | None:
        answer = await connection.request(calls.GET_TELEMETRY_SUBSCRIPTIONS, {"client_instance_id": self._id})
        if answer.error_code:
            return self._after(answer.error_code)
        self._id, self._asked = answer.client_instance_id, answer
        self._known.set()
        interval = self._interval
        return interval * random.uniform(*_FIRST_PUSH) if answer.requested_metrics else interval

    async def _push(self, connection: Connection, *, terminating: bool) -> float | None:
        asked = self._asked
        assert asked is not None
        data = self._pushes.write(
            self._read(), asked.requested_metrics, time.time_ns(), delta=asked.delta_temporality
        )
        compress = _GZIP in asked.accepted_compression_types
        answer = await connection.request(
            calls.PUSH_TELEMETRY,
            {
                "client_instance_id": self._id,
                "subscription_id": asked.subscription_id,
                "terminating": terminating,
                "compression_type": _GZIP if compress else _NONE,
                "metrics": gzip.compress(data, 1) if compress else data,
            },
        )
        if answer.error_code:
            return self._after(answer.error_code)
        self._pushes.arrived()
        return self._interval

    def _after(self, code: int) -> float | None:
        """Return the seconds until the next attempt after an error; None to end."""
        if code in _ASK_ANEW:
            self._asked = None
            return 0.0
        if code in _NEXT_TIME:
            return self._interval
        logger.info("telemetry ends: the cluster refused it with %s", ErrorCode(code).name)
        self._asked = None
        self._refuse(ErrorCode(code).name)
        return None

    def _refuse(self, reason: str) -> None:
        self._refused = KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
        self._known.set()

    @property
    def _interval(self) -> float:
        return _UNASKED_SECONDS if self._asked is None else self._asked.push_interval_ms / 1000
