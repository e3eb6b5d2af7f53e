"""Appends to partitions upstream that anybody may write: settings, dead letters."""

from __future__ import annotations

import asyncio

from sharecore.upstream import Outlet, Upstream


class Sending:
    """Sends record batches, each until it is written, or surely cannot be."""

    def __init__(self, upstream: Upstream, outlet: Outlet) -> None:
        self._upstream, self._outlet = upstream, outlet

    def send(self, topic: str, partition: int, records: bytes) -> asyncio.Future[int]:
        """Appends a record batch; tells its first offset."""
        return asyncio.ensure_future(self._sent(topic, partition, records))

    async def _sent(self, topic: str, partition: int, records: bytes) -> int:
        async def send() -> int:
            answer = await self._outlet.send(topic, partition, records)
            if answer.error is not None:
                raise answer.error
            return answer.base_offset

        return await self._upstream.retry(send)
