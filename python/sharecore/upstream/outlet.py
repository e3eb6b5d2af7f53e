"""Produce requests: batches waiting for a broker share the next request, one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sharecore.client.errors import Disconnected
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.upstream.cluster import Upstream
from sharecore.upstream.errors import refusal

if TYPE_CHECKING:
    from sharecore.protocol.received import PartitionProduceResponse

logger = logging.getLogger(__name__)

REQUEST_BYTES_MAX = 8 * 1024 * 1024
_ACKS_ALL = -1
_TIMEOUT_MS = 10_000


class Answer(NamedTuple):
    """Result of a batch.

    Attributes:
        error: None once all in-sync replicas have it.
        base_offset: its offset.
        sent: whether the broker may have received it.
    """

    error: KafkaError | None
    base_offset: int
    sent: bool


class _Batch(NamedTuple):
    topic: str
    partition: int
    records: bytes
    answered: asyncio.Future[Answer]


class Outlet:
    """Send record batches of any number of writers.

    A broker processes one request of a connection at a time, and waits for replicas before the next. So
    batches that arrive meanwhile share a request.

    Args:
        upstream: the cluster; it must know the written topics.
        acks_timeout_ms: how long a broker may wait for its replicas.
    """

    def __init__(self, upstream: Upstream, *, acks_timeout_ms: int = _TIMEOUT_MS) -> None:
        self.upstream = upstream
        self._timeout_ms = min(acks_timeout_ms, upstream.settings.request_timeout_ms // 2)
        self._lanes: dict[int, _Lane] = {}

    async def send(self, topic: str, partition: int, records: bytes) -> Answer:
        """Send one batch to the partition's leader, once."""
        node, _ = self.upstream.metadata.leader(topic, partition)
        if node < 0:
            self.upstream.stale()
            error = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader upstream")
            return Answer(error, -1, False)
        lane = self._lanes.get(node)
        if lane is None:
            lane = self._lanes[node] = _Lane(self.upstream, node, self._timeout_ms)
        return await lane.send(topic, partition, records)


class _Lane:
    """Requests to one broker."""

    def __init__(self, upstream: Upstream, node: int, timeout_ms: int) -> None:
        self._upstream, self._node, self._timeout_ms = upstream, node, timeout_ms
        self._waiting: list[_Batch] = []
        self._task: asyncio.Task[None] | None = None

    async def send(self, topic: str, partition: int, records: bytes) -> Answer:
        loop = asyncio.get_running_loop()
        batch = _Batch(topic, partition, records, loop.create_future())
        self._waiting.append(batch)
        if self._task is None:
            self._task = loop.create_task(self._drain(), name=f"sharecore upstream write {self._node}")
        return await batch.answered

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._task = None

    def _take(self) -> list[_Batch]:
        """Return the batches of the next request, one per partition."""
        taken: list[_Batch] = []
        left: list[_Batch] = []
        places: set[tuple[str, int]] = set()
        size = 0
        for batch in self._waiting:
            place = batch.topic, batch.partition
            full = taken and size + len(batch.records) > REQUEST_BYTES_MAX
            if batch.answered.cancelled():
                continue
            if full or place in places:
                left.append(batch)
            else:
                taken.append(batch)
                size += len(batch.records)
            places.add(place)
        self._waiting = left
        return taken

    async def _send(self, batches: Sequence[_Batch]) -> None:
        if not batches:
            return
        sent = False
        try:
            connection = await self._upstream.connect(self._node, "write")
            if not connection.ready:
                await connection.prepare()
            sent = True
            response = await connection.request(calls.PRODUCE, self._message(batches))
        except KafkaError as error:
            self._upstream.stale()
            self._fail(batches, error, sent and isinstance(error, Disconnected))
            return
        except Exception as error:
            logger.exception("a request to broker %d failed", self._node)
            self._fail(batches, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)), sent)
            return
        answers = {
            (topic.name, part.index): part
            for topic in response.responses
            for part in topic.partition_responses
        }
        for batch in batches:
            _settle(batch, _answer(batch, answers.get((batch.topic, batch.partition))))

    def _fail(self, batches: Sequence[_Batch], error: KafkaError, sent: bool) -> None:
        for batch in batches:
            _settle(batch, Answer(error, -1, sent))

    def _message(self, batches: Sequence[_Batch]) -> dict[str, object]:
        topics: dict[str, list[dict[str, object]]] = {}
        for batch in batches:
            data = {"index": batch.partition, "records": batch.records}
            topics.setdefault(batch.topic, []).append(data)
        return {
            "transactional_id": None,
            "acks": _ACKS_ALL,
            "timeout_ms": self._timeout_ms,
            "topic_data": [{"name": name, "partition_data": data} for name, data in topics.items()],
        }


def _answer(batch: _Batch, part: PartitionProduceResponse | None) -> Answer:
    place = f"{batch.topic}-{batch.partition}"
    if part is None:
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the upstream answer does not include {place}")
        return Answer(error, -1, True)
    if part.error_code:
        words = getattr(part, "error_message", None)
        error = refusal(part.error_code, "to append to", place, "Write", words, topic=batch.topic)
        return Answer(error, -1, True)
    return Answer(None, part.base_offset, True)


def _settle(batch: _Batch, answer: Answer) -> None:
    if not batch.answered.done():
        batch.answered.set_result(answer)
