"""Appends to shared partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sharecore._core import encode_batch
from sharecore.errors import KafkaError
from sharecore.protocol import calls
from sharecore.upstream.delivery import TIMEOUT_MS, deliver
from sharecore.upstream.errors import NotWritten
from sharecore.upstream.outlet import Outlet
from sharecore.upstream.producer import Producer, Record, following, new_producer

if TYPE_CHECKING:
    from sharecore.protocol.received import InitProducerIdResponse


class _Place:
    """A partition and its producer; a producer's sequence numbers have no gaps."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.producer: Producer | None = None
        self.sequence = 0


class Appender:
    """An idempotent producer with one pending batch per partition.

    Args:
        outlet: sends the batches.
        timeout_ms: timeout of a batch with its retries.
    """

    def __init__(self, outlet: Outlet, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._outlet = outlet
        self._timeout_ms = timeout_ms
        self._places: dict[tuple[str, int], _Place] = {}

    async def append(self, topic: str, partition: int, records: bytes | Sequence[Record], now_ms: int) -> int:
        """Append one batch to a partition of a topic in the metadata.

        Args:
            records: at least one key and value, appended once; or a whole batch without a producer, which
                may be appended twice if an answer is lost.
            now_ms: timestamp of a batch made of keys and values.

        Returns:
            The offset of the first record, once all in-sync replicas have it.

        Raises:
            NotWritten: it is definitely not in the log.
            Unresolved: it may be in the log.
        """
        place = self._places.setdefault((topic, partition), _Place())
        async with place.turn:
            if isinstance(records, bytes):
                return await deliver(self._outlet, topic, partition, records, self._timeout_ms)
            if place.producer is None:
                place.producer, place.sequence = await self._new_producer(), 0
            data = encode_batch(records, now_ms=now_ms, producer=(*place.producer, place.sequence))
            try:
                offset = await deliver(self._outlet, topic, partition, data, self._timeout_ms)
            except NotWritten:
                raise
            except BaseException:
                # the next sequence number is unknown
                place.producer = None
                raise
            place.sequence = following(place.sequence, len(records))
            return offset

    async def _new_producer(self) -> Producer:
        upstream = self._outlet.upstream

        async def ask(message: dict[str, object]) -> InitProducerIdResponse:
            node = next(iter(upstream.metadata.nodes), -1)
            return await upstream.request(node, calls.INIT_PRODUCER_ID, message)

        try:
            return await new_producer(upstream, ask)
        except KafkaError as error:
            raise NotWritten(error.code, error.message) from error
