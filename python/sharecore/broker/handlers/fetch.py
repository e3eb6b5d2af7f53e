"""Fetch: records of partitions that a consumer was assigned or chose; waits until there are enough.

Fetch sessions are not kept: every answer has session id 0, and clients then name their partitions in each
request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log, Reader
from sharecore.waiting import DelayedFetch, Gather, reply

_IDS_SINCE = 13
_READ_COMMITTED = 1
_FINAL_EPOCH = -1


def handle(context: RequestContext, request: Any) -> Result:
    if request.session_id != 0:
        if request.session_epoch == _FINAL_EPOCH:
            return {"responses": []}
        return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
    gather: Gather[None] = Gather()
    fetch = _Fetch(context, request, gather.part(None))
    message = fetch.start(request.max_wait_ms)
    if message is not None:
        return message
    answer = reply(gather, lambda: gather.outcomes[None])
    answer.add_done_callback(lambda _: fetch.cancel())
    return answer


class _Fetch(DelayedFetch[dict[str, Any]]):
    """One request: reads what there is, and reads again when a log has grown or was read from the disk."""

    def __init__(
        self, context: RequestContext, request: Any, ended: Callable[[dict[str, Any]], None]
    ) -> None:
        super().__init__(asyncio.get_running_loop().call_later, ended)
        self._context = context
        self._request = request
        self._room = context.records_room()
        self._committed = request.isolation_level == _READ_COMMITTED
        self._logs: list[Log] = []
        self._watched: Sequence[Log] = ()
        self._readers: dict[Log, Reader] = {}
        self._scheduled = False
        self._is_cold = False

    def look(self, *, late: bool) -> dict[str, Any] | None:
        """Reads every partition, within the limits of bytes.

        None while there is not enough, or while a thread reads from the disk, which the answer waits for even
        when its time is over.
        """
        request = self._request
        room = min(self._room, request.max_bytes, self._context.broker.config.fetch_max_bytes)
        by_id = self._context.api_version >= _IDS_SINCE
        total = 0
        responses = []
        self._logs = []
        self._is_cold = False
        is_ready = late
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                try:
                    answer, size = self._read_partition(topic, asked, room - total, at_least_one=not total)
                    total += size
                except KafkaError as error:
                    answer = _failed(asked.partition, error.code)
                    is_ready = True
                partitions.append(answer)
            responses.append(
                {
                    "topic_id" if by_id else "topic": topic.topic_id if by_id else topic.topic,
                    "partitions": partitions,
                }
            )
        if self._is_cold or not (is_ready or total >= min(request.min_bytes, self._room) or not self._logs):
            return None
        self._readers.clear()  # they hold this fetch: a cycle a fetch is work for the collector
        return {"responses": responses}

    def watch(self) -> None:
        self._watched = self._logs
        for log in self._watched:
            log.on_advance(self._advanced)

    def unwatch(self) -> None:
        for log in self._watched:
            log.off_advance(self._advanced)

    def _read_partition(
        self, topic: Any, asked: Any, room: int, *, at_least_one: bool
    ) -> tuple[dict[str, Any], int]:
        log = self._find(topic, asked)
        self._logs.append(log)
        if asked.current_leader_epoch > 0:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        start, high_watermark = log.start_offset, log.high_watermark
        if not start <= asked.fetch_offset <= log.end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        stable = log.last_stable_offset
        limit = stable if self._committed else high_watermark
        records: bytes = b""
        aborted: list[dict[str, int]] | None = [] if self._committed else None
        if asked.fetch_offset < limit and (room > 0 or at_least_one):
            size = min(asked.partition_max_bytes, max(room, 0))
            found = self._reader(log).read(asked.fetch_offset, size, limit=limit, at_least_one=at_least_one)
            if found is None:
                # the answer is put together anew: until then this much of its room is taken
                self._is_cold = True
                return {}, size
            records = found.records
            if self._committed and records:
                aborted = [
                    {"producer_id": producer_id, "first_offset": first}
                    for producer_id, first in log.aborted(asked.fetch_offset, found.batches[-1][1] + 1)
                ]
        return {
            "partition_index": asked.partition,
            "high_watermark": high_watermark,
            "last_stable_offset": stable,
            "log_start_offset": start,
            "aborted_transactions": aborted,
            "records": records,
        }, len(records)

    def _reader(self, log: Log) -> Reader:
        reader = self._readers.get(log)
        if reader is None:
            self._readers[log] = reader = Reader(log, self._schedule)
        return reader

    def _find(self, topic: Any, asked: Any) -> Log:
        topics = self._context.broker.topics
        if self._context.api_version >= _IDS_SINCE:
            found = topics.by_id(topic.topic_id)
            if found is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            self._context.require(Operation.READ, ResourceType.TOPIC, found.name)
        else:
            self._context.require(Operation.READ, ResourceType.TOPIC, topic.topic)
            found = topics.get(topic.topic)
        if found is None or not 0 <= asked.partition < len(found.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log: Log = found.partitions[asked.partition]
        return log

    def _advanced(self, log: Log) -> None:
        """A log has grown."""
        if not self._is_cold:
            self._schedule()

    def _schedule(self) -> None:
        """Reads again; what happens in the same turn of the loop costs one more read."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._read_again)

    def _read_again(self) -> None:
        self._scheduled = False
        self.again()


def _failed(partition: int, code: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": partition,
        "error_code": code,
        "high_watermark": -1,
        "aborted_transactions": None,
        "records": b"",
    }
