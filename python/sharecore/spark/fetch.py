"""What an executor does: fetches leased ranges from their partition's leader, as any consumer may.

Leases bind acquisition only; a plain fetch needs none, and can be repeated when a task is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from sharecore.client.cluster import Backoff, Cluster, TopicIdPartition
from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.client.settings import ConnectionSettings, read_connection_settings
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.spark.ranges import Range
from sharecore.spark.rows import Rows, decode

logger = logging.getLogger(__name__)

FETCH_BYTES_MAX = 4 << 20
FETCH_BYTES_MIN = 64 << 10
_BATCH_HEADER_BYTES = 100
_FETCH_WAIT_MS = 500
_AGAIN = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}


@dataclass(frozen=True)
class LeasedRanges(InputPartition):
    """One task: ranges of one partition with their delivery counts.

    `record_bytes` is about the size of a record, so that no more is asked for than needed.
    """

    topic: str
    topic_id: UUID
    partition: int
    ranges: tuple[Range, ...]
    record_bytes: float

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class _Fetcher:
    """Connections that outlive a task, with the event loop that they belong to."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.loop = asyncio.new_event_loop()
        self.cluster = self.loop.run_until_complete(self._cluster())

    async def _cluster(self) -> Cluster[ConnectionSettings]:
        return Cluster(self.settings)

    def begin(self, part: LeasedRanges, offset: int, bytes_max: int) -> asyncio.Task[Any]:
        """Starts a fetch; the request is on its way when this returns, if there is a connection."""
        task = self.loop.create_task(self._fetch(part, offset, bytes_max))
        self.loop.run_until_complete(asyncio.sleep(0))
        return task

    def end(self, task: asyncio.Task[Any]) -> Any:
        return self.loop.run_until_complete(task)

    async def _fetch(self, part: LeasedRanges, offset: int, bytes_max: int) -> Any:
        key = TopicIdPartition(part.topic_id, part.partition)
        backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)
        until = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        while True:
            try:
                return await self._try(key, offset, bytes_max)
            except AuthenticationFailed:
                raise
            except KafkaError as error:
                if not isinstance(error, Disconnected) and error.code not in _AGAIN:
                    raise
                if time.monotonic() > until:
                    raise
                logger.info("%s at %d: %s", part.name, offset, error)
                self.cluster.forget_leader(key)
            await asyncio.sleep(backoff.seconds())

    async def _try(self, key: TopicIdPartition, offset: int, bytes_max: int) -> Any:
        if self.cluster.leader(key) < 0:
            await self.cluster.refresh(topic_ids=[key.topic_id])
        leader = self.cluster.leader(key)
        if leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {key.partition} has no leader")
        connection = await self.cluster.connect(leader)
        wanted = {
            "partition": key.partition,
            "fetch_offset": offset,
            "partition_max_bytes": bytes_max,
        }
        message = {
            "max_wait_ms": _FETCH_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": bytes_max,
            "isolation_level": 0,
            "topics": [{"topic_id": key.topic_id, "partitions": [wanted]}],
        }
        response = await connection.request(ApiKey.FETCH, message)
        if response.error_code:
            raise KafkaError(response.error_code, "the fetch was refused")
        (answer,) = response.responses[0].partitions
        if answer.error_code:
            raise KafkaError(answer.error_code, f"partition {key.partition} at {offset}")
        return answer


_fetchers: dict[tuple[tuple[str, str], ...], _Fetcher] = {}


def read_ranges(
    part: LeasedRanges, connection: dict[str, str], *, headers: bool, fail_on_data_loss: bool
) -> Iterator[pa.RecordBatch]:
    """The records of a task, fetching the next ones while Spark works on those before.

    Raises:
        KafkaError: a record is gone from the log or cannot be read, and `fail_on_data_loss` says that this
            matters; or no leader answered in time.
    """
    # workers are forked and used again by Spark: what is kept here saves connecting for every task
    known = tuple(sorted(connection.items()))
    if known not in _fetchers:
        _fetchers[known] = _Fetcher(read_connection_settings(connection))
    fetcher = _fetchers[known]
    left = list(part.ranges)
    record_bytes = part.record_bytes
    quiet_until = time.monotonic() + fetcher.settings.default_api_timeout_ms / 1000
    asked = fetcher.begin(part, left[0][0], _bytes_for(left, record_bytes)) if left else None
    while asked is not None:
        at = left[0][0]
        try:
            answer = fetcher.end(asked)
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            left = _skip_deleted(fetcher, part, left, fail_on_data_loss)
            asked = fetcher.begin(part, left[0][0], _bytes_for(left, record_bytes)) if left else None
            continue
        records = answer.records or b""
        rows = decode(records, left, part.topic, part.partition, headers=headers)
        _look_at(rows, part, fail_on_data_loss)
        if rows.next is not None and rows.next > at:
            quiet_until = time.monotonic() + fetcher.settings.default_api_timeout_ms / 1000
            record_bytes = max(1.0, len(records) / (rows.next - at))
            left = [(max(first, rows.next), last, count) for first, last, count in left if last >= rows.next]
        elif time.monotonic() > quiet_until:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"{part.name} has nothing at offset {at} (high watermark {answer.high_watermark})",
            )
        asked = fetcher.begin(part, left[0][0], _bytes_for(left, record_bytes)) if left else None
        if rows.batch is not None:
            yield rows.batch


def _bytes_for(ranges: list[Range], record_bytes: float) -> int:
    """About what is needed of the log from the first range to the first hole that is worth another fetch."""
    first, last = ranges[0][0], ranges[0][1]
    for low, high, _ in ranges[1:]:
        if (low - last) * record_bytes > FETCH_BYTES_MIN:
            break
        last = high
    wanted = int((last - first + 1) * record_bytes * 1.05) + _BATCH_HEADER_BYTES
    return min(FETCH_BYTES_MAX, max(FETCH_BYTES_MIN, wanted))


def _look_at(rows: Rows, part: LeasedRanges, fail_on_data_loss: bool) -> None:
    for first, last, reason in rows.faults:
        message = f"{part.name}: records {first} to {last} cannot be read: {reason}"
        if fail_on_data_loss:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{message}; failOnDataLoss=false skips them")
        logger.warning("%s; they are skipped", message)


def _skip_deleted(
    fetcher: _Fetcher, part: LeasedRanges, left: list[Range], fail_on_data_loss: bool
) -> list[Range]:
    start = fetcher.loop.run_until_complete(_log_start(fetcher, part))
    if start <= left[0][0]:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{part.name} ends before offset {left[0][0]}, which was leased: the log was cut back",
        )
    message = f"{part.name}: records {left[0][0]} to {min(start - 1, left[-1][1])} were deleted"
    if fail_on_data_loss:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{message} before they were read; failOnDataLoss=false goes on without them",
        )
    logger.warning("%s before they were read", message)
    return [(max(first, start), last, count) for first, last, count in left if last >= start]


async def _log_start(fetcher: _Fetcher, part: LeasedRanges) -> int:
    await fetcher.cluster.refresh(topic_ids=[part.topic_id])
    leader = fetcher.cluster.leader(TopicIdPartition(part.topic_id, part.partition))
    connection = await fetcher.cluster.connect(leader)
    wanted = [{"partition_index": part.partition, "timestamp": -2}]
    message = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": part.topic, "partitions": wanted}]}
    answer = await connection.request(ApiKey.LIST_OFFSETS, message)
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise KafkaError(found.error_code, part.name)
    return int(found.offset)
