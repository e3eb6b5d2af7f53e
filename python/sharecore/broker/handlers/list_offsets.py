"""ListOffsets: offsets by their place in the log, or by time."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.storage import Log

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)
_SINCE_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED = 1


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    answers = []
    for topic in request.topics:
        times = Counter(asked.partition_index for asked in topic.partitions)
        answers.append(
            {
                "name": topic.name,
                "partitions": [
                    _answer(context, request, topic.name, asked, times[asked.partition_index])
                    for asked in topic.partitions
                ],
            }
        )
    return {"topics": answers}


def _answer(context: RequestContext, request: Any, name: str, asked: Any, times: int) -> dict[str, Any]:
    log = context.broker.topics.log(name, asked.partition_index)
    code = ErrorCode.NONE
    found: tuple[int, int, int] | None = None
    if times > 1:
        code = ErrorCode.INVALID_REQUEST
    elif log is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif asked.current_leader_epoch > 0:
        code = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif asked.timestamp < 0 and context.api_version < _SINCE_VERSION.get(asked.timestamp, 1 << 15):
        code = ErrorCode.UNSUPPORTED_VERSION
    else:
        found = _find(log, asked.timestamp, committed=request.isolation_level == _READ_COMMITTED)
    offset, timestamp, epoch = found or (-1, -1, -1)
    return {
        "partition_index": asked.partition_index,
        "error_code": code,
        "offset": offset,
        "timestamp": timestamp,
        "leader_epoch": epoch,
    }


def _find(log: Log, timestamp: int, *, committed: bool) -> tuple[int, int, int] | None:
    """Offset, its timestamp and leader epoch; None when no record is meant."""
    end = log.last_stable_offset if committed else log.high_watermark
    if timestamp == _LATEST:
        return end, -1, 0
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start_offset, -1, 0
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return None
    found = log.max_timestamp() if timestamp == _MAX_TIMESTAMP else log.offset_for(timestamp)
    return found if found is not None and found[0] < end else None
