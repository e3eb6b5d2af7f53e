"""Fetch: records of partitions that a consumer was assigned or chose; waits until there are enough.

Fetch sessions are not kept: every answer has session id 0, and clients then name their partitions in each
request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Log, Reader

_IDS_SINCE = 13
_READ_COMMITTED = 1
_FINAL_EPOCH = -1


def handle(context: RequestContext, request: Any) -> Result:
    if request.session_id != 0:
        if request.session_epoch == _FINAL_EPOCH:
            return {"responses": []}
        return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
    fetch = _Fetch(context, request)
    message = fetch.read()
    if fetch.ready or (request.max_wait_ms <= 0 and not fetch.cold):
        return message
    return fetch.wait()


class _Fetch:
    """One request: reads what there is, and reads again when a log has grown or was read from the disk.

    Attributes:
        ready: the answer need not wait.
        cold: the answer must wait for the disk, even when its time is up.
    """

    def __init__(self, context: RequestContext, request: Any) -> None:
        self._context = context
        self._request = request
        self._committed = request.isolation_level == _READ_COMMITTED
        self._logs: list[Log] = []
        self._readers: dict[Log, Reader] = {}
        self._future: asyncio.Future[dict[str, Any]] | None = None
        self._scheduled = False
        self._is_late = False
        self.ready = False
        self.cold = False

    def read(self) -> dict[str, Any]:
        """Reads every partition, within the limits of bytes; sets `ready` and `cold`."""
        request = self._request
        room = min(request.max_bytes, self._context.broker.config.fetch_max_bytes)
        by_id = self._context.api_version >= _IDS_SINCE
        total = 0
        responses = []
        self._logs = []
        self.ready = self.cold = False
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                try:
                    answer, size = self._read_partition(topic, asked, room - total, at_least_one=not total)
                    total += size
                except KafkaError as error:
                    answer = _failed(asked.partition, error.code)
                    self.ready = True
                partitions.append(answer)
            responses.append(
                {
                    "topic_id" if by_id else "topic": topic.topic_id if by_id else topic.topic,
                    "partitions": partitions,
                }
            )
        if total >= request.min_bytes or not self._logs:
            self.ready = True
        self.ready = self.ready and not self.cold
        return {"responses": responses}

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
                self.cold = True
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
        else:
            found = topics.get(topic.topic)
        if found is None or not 0 <= asked.partition < len(found.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log: Log = found.partitions[asked.partition]
        return log

    def wait(self) -> asyncio.Future[dict[str, Any]]:
        """The answer when there are enough bytes, or when the request's time is up."""
        loop = asyncio.get_running_loop()
        self._future = future = loop.create_future()
        watched = self._logs
        for log in watched:
            log.on_advance(self._advanced)
        timer = loop.call_later(max(self._request.max_wait_ms, 0) / 1000, self._time_up)

        def leave(done: asyncio.Future[dict[str, Any]]) -> None:
            timer.cancel()
            for log in watched:
                log.off_advance(self._advanced)

        future.add_done_callback(leave)
        return future

    def _advanced(self, log: Log) -> None:
        """A log has grown."""
        if not self.cold:
            self._schedule()

    def _schedule(self) -> None:
        """Reads again; what happens in the same turn of the loop costs one more read."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._read_again)

    def _read_again(self) -> None:
        self._scheduled = False
        if self._future is None or self._future.done():
            return
        message = self.read()
        if self.ready or (self._is_late and not self.cold):
            self._future.set_result(message)

    def _time_up(self) -> None:
        self._is_late = True
        self._read_again()


def _failed(partition: int, code: ErrorCode) -> dict[str, Any]:
    return {"partition_index": partition, "error_code": code, "high_watermark": -1, "records": b""}
