"""What an executor does: fetches leased ranges from their partition's leader, as any consumer may.

Leases bind acquisition only; a plain fetch needs none, and can be repeated when a task is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from sharecore.errors import ErrorCode, KafkaError
from sharecore.spark.fetcher import EARLIEST, Fetcher, fetcher_for
from sharecore.spark.ranges import Range
from sharecore.spark.rows import Rows, decode

logger = logging.getLogger(__name__)

FETCH_BYTES_MAX = 4 << 20
FETCH_BYTES_MIN = 64 << 10
_BATCH_HEADER_BYTES = 100


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


def read_ranges(
    part: LeasedRanges, connection: dict[str, str], *, headers: bool, fail_on_data_loss: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task; prefetch while Spark works.

    Raises:
        KafkaError: a record is gone from the log or cannot be read, and `fail_on_data_loss` says that this
            matters; or no leader answered in time.
    """
    fetcher = fetcher_for(connection)
    left = list(part.ranges)
    record_bytes = part.record_bytes
    quiet_until = time.monotonic() + fetcher.settings.default_api_timeout_ms / 1000
    asked = fetcher.begin(part, left[0][0], _bytes_for(left, record_bytes)) if left else None
    while asked is not None:
        at = left[0][0]
        try:
            answer = fetcher.end(asked)
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_ID:
                gone = "the topic was deleted with records that were leased"
                _lose(f"{part.name}: {gone}", error.code, fail_on_data_loss)
                return
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
    """Return about how many bytes to fetch, up to the first hole that is worth another fetch."""
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


def _lose(message: str, code: ErrorCode, fail_on_data_loss: bool) -> None:
    if fail_on_data_loss:
        raise KafkaError(code, f"{message}; failOnDataLoss=false goes on without them")
    logger.warning("%s", message)


def _skip_deleted(
    fetcher: Fetcher, part: LeasedRanges, left: list[Range], fail_on_data_loss: bool
) -> list[Range]:
    start = fetcher.offset_for(part, EARLIEST)
    if start <= left[0][0]:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{part.name} ends before offset {left[0][0]}, which was leased: the log was cut back",
        )
    gone = f"records {left[0][0]} to {min(start - 1, left[-1][1])} were deleted before they were read"
    _lose(f"{part.name}: {gone}", ErrorCode.OFFSET_OUT_OF_RANGE, fail_on_data_loss)
    return [(max(first, start), last, count) for first, last, count in left if last >= start]
