"""A client of an existing cluster, for the length of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.harness.broker import Broker

from sharecore.client.settings import read_connection_settings
from sharecore.clock import SystemClock
from sharecore.errors import KafkaError
from sharecore.upstream import ExclusiveWriter, Upstream


@asynccontextmanager
async def connected(broker: Broker) -> AsyncIterator[Upstream]:
    settings = read_connection_settings(bootstrap_servers=broker.bootstrap, request_timeout_ms=10_000)
    upstream = Upstream(settings, SystemClock())
    await upstream.start()
    try:
        yield upstream
    finally:
        await upstream.close()


def now_ms() -> int:
    """For records: Apache Kafka deletes what is older than its retention, half a minute after its start."""
    return SystemClock().now_ms()


async def append(writer: ExclusiveWriter, *values: bytes) -> KafkaError | None:
    """How an append of a record a value ended."""
    ended: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    writer.append([(None, value) for value in values], now_ms(), ended.set_result)
    return await ended
