"""ListOffsets: offsets by their place in the log, or by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Mapping
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Found, Log

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


def handle(context: RequestContext, request: Any) -> Result:
    if any(_by_time(asked.timestamp) for topic in request.topics for asked in topic.partitions):
        return _look_up(context, request)
    return _answers(context, request, {})


def _by_time(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == _MAX_TIMESTAMP


async def _look_up(context: RequestContext, request: Any) -> dict[str, Any]:
    """Asks the logs for times first: they may have to look at the disk."""
    found = {}
    for topic in request.topics:
        for asked in topic.partitions:
            log = context.broker.topics.log(topic.name, asked.partition_index)
            if log is not None and _by_time(asked.timestamp):
                found[topic.name, asked.partition_index] = await _found_by_time(log, asked.timestamp)
    return _answers(context, request, found)


def _found_by_time(log: Log, timestamp: int) -> Awaitable[Found | None]:
    if timestamp == _MAX_TIMESTAMP:
        return log.find_max_timestamp()
    return log.find_offset(timestamp)


def _answers(
    context: RequestContext, request: Any, found: Mapping[tuple[str, int], Found | None]
) -> dict[str, Any]:
    answers = []
    for topic in request.topics:
        times = Counter(asked.partition_index for asked in topic.partitions)
        answers.append(
            {
                "name": topic.name,
                "partitions": [
                    _answer(context, request, topic.name, asked, times[asked.partition_index], found)
                    for asked in topic.partitions
                ],
            }
        )
    return {"topics": answers}


def _answer(
    context: RequestContext,
    request: Any,
    name: str,
    asked: Any,
    times: int,
    by_time: Mapping[tuple[str, int], Found | None],
) -> dict[str, Any]:
    log = context.broker.topics.log(name, asked.partition_index)
    code = ErrorCode.NONE
    found: Found | None = None
    if not context.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif times > 1:
        code = ErrorCode.INVALID_REQUEST
    elif log is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif asked.current_leader_epoch > 0:
        code = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif asked.timestamp < 0 and context.api_version < _SINCE_VERSION.get(asked.timestamp, 1 << 15):
        code = ErrorCode.UNSUPPORTED_VERSION
    else:
        end = log.last_stable_offset if request.isolation_level == _READ_COMMITTED else log.high_watermark
        if _by_time(asked.timestamp):
            found = by_time.get((name, asked.partition_index))
            found = found if found is not None and found[0] < end else None
        else:
            found = _by_place(log, asked.timestamp, end)
    offset, timestamp, epoch = found or (-1, -1, -1)
    return {
        "partition_index": asked.partition_index,
        "error_code": code,
        "offset": offset,
        "timestamp": timestamp,
        "leader_epoch": epoch,
    }


def _by_place(log: Log, timestamp: int, end: int) -> Found | None:
    if timestamp == _LATEST:
        return end, -1, 0
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start_offset, -1, 0
    return None
