"""Appends to partitions upstream that anybody may write: settings, dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sharecore.coordinator_log.topic_log import Record
from sharecore.upstream import Appender, Outlet, Upstream


class Sending:
    """Sends record batches, each until it is written, or surely cannot be."""

    def __init__(self, upstream: Upstream, outlet: Outlet) -> None:
        self._upstream, self._outlet = upstream, outlet
        self._appender = Appender(outlet)

    def write(
        self, topic: str, partition: int, records: Sequence[Record], now_ms: int
    ) -> asyncio.Future[int]:
        """Append records once and in the order of the calls; the result is the offset of the first.

        A batch without a producer id that is sent again after its answer was lost may come to stand behind
        what another node has written meanwhile.
        """
        return asyncio.ensure_future(self._appender.append(topic, partition, records, now_ms))

    def send(self, topic: str, partition: int, records: bytes) -> asyncio.Future[int]:
        """Append a record batch, perhaps more than once; tell its first offset."""
        return asyncio.ensure_future(self._sent(topic, partition, records))

    async def _sent(self, topic: str, partition: int, records: bytes) -> int:
        async def send() -> int:
            answer = await self._outlet.send(topic, partition, records)
            if answer.error is not None:
                raise answer.error
            return answer.base_offset

        return await self._upstream.retry(send)
