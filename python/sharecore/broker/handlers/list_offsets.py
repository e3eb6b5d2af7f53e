"""ListOffsets: offsets by their place in the log, or by time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from sharecore.broker.cluster import NO_EPOCH
from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Found, Log
from sharecore.waiting import Gather, reply

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
    known: Gather[tuple[str, int]] = Gather()
    for topic in request.topics:
        for asked in topic.partitions:
            log = _log(context, request, topic.name, asked.partition_index)
            if log is not None:
                known.run((topic.name, asked.partition_index), _ask, log, asked.timestamp)
    return reply(known, lambda: _answers(context, request, known.outcomes))


def _log(context: RequestContext, request: Any, name: str, index: int) -> Log | None:
    log = context.broker.topics.log(name, index)
    return None if log is None else log.isolate(committed=request.isolation_level == _READ_COMMITTED)


def _by_time(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == _MAX_TIMESTAMP


def _ask(log: Log, timestamp: int, done: Callable[[Found | KafkaError | None], None]) -> None:
    """Asks a log for a time, or until it knows where it begins and ends."""
    if not _by_time(timestamp):
        log.when_known(done)
        return

    def looked_up(looking: asyncio.Future[Found | None]) -> None:
        error = None if looking.cancelled() else looking.exception()
        if looking.cancelled() or error is not None:
            done(error if isinstance(error, KafkaError) else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            done(looking.result())

    looking = log.find_max_timestamp() if timestamp == _MAX_TIMESTAMP else log.find_offset(timestamp)
    looking.add_done_callback(looked_up)


def _answers(
    context: RequestContext, request: Any, known: Mapping[tuple[str, int], Found | KafkaError | None]
) -> dict[str, Any]:
    answers = []
    for topic in request.topics:
        times = Counter(asked.partition_index for asked in topic.partitions)
        once = {asked.partition_index: asked for asked in topic.partitions}
        partitions = [
            _answer(context, request, topic.name, asked, times[index], known) for index, asked in once.items()
        ]
        if partitions:
            answers.append({"name": topic.name, "partitions": partitions})
    return {"topics": answers}


def _answer(
    context: RequestContext,
    request: Any,
    name: str,
    asked: Any,
    times: int,
    known: Mapping[tuple[str, int], Found | KafkaError | None],
) -> dict[str, Any]:
    log = _log(context, request, name, asked.partition_index)
    looked_up = known.get((name, asked.partition_index))
    code = ErrorCode.NONE
    found: Found | None = None
    if not context.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif times > 1:
        code = ErrorCode.INVALID_REQUEST
    elif asked.timestamp < 0 and context.api_version < _SINCE_VERSION.get(asked.timestamp, 1 << 15):
        code = ErrorCode.UNSUPPORTED_VERSION
    elif log is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif isinstance(looked_up, KafkaError):
        code = looked_up.code
    elif asked.current_leader_epoch > context.broker.cluster.leader(log.topic_id, log.index).epoch:
        code = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif asked.current_leader_epoch < NO_EPOCH:
        code = ErrorCode.FENCED_LEADER_EPOCH
    else:
        end = log.last_stable_offset if request.isolation_level == _READ_COMMITTED else log.high_watermark
        if _by_time(asked.timestamp):
            found = looked_up if looked_up is not None and looked_up[0] < end else None
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
