"""Appends to shared upstream partitions: settings and dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sharecore.coordinator_log.topic_log import Record
from sharecore.upstream import Appender, Outlet, Upstream


class Sending:
    """Send record batches until each is written or has definitely failed."""

    def __init__(self, upstream: Upstream, outlet: Outlet) -> None:
        self._upstream, self._outlet = upstream, outlet
        self._appender = Appender(outlet)

    def write(
        self, topic: str, partition: int, records: Sequence[Record], now_ms: int
    ) -> asyncio.Future[int]:
        """Append records once and in call order; the result is the first offset.

        If the answer to a batch without producer id is lost, its retry may land after a write of another
        node.
        """
        return asyncio.ensure_future(self._appender.append(topic, partition, records, now_ms))

    def send(self, topic: str, partition: int, records: bytes) -> asyncio.Future[int]:
        """Append a record batch at least once; the result is its first offset."""
        return asyncio.ensure_future(self._sent(topic, partition, records))

    async def _sent(self, topic: str, partition: int, records: bytes) -> int:
        async def send() -> int:
            answer = await self._outlet.send(topic, partition, records)
            if answer.error is not None:
                raise answer.error
            return answer.base_offset

        return await self._upstream.retry(send)
