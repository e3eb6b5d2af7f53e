"""Offsets of logs, by time and by leader epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING

from sharecore.broker.cluster import NO_EPOCH, wrong_epoch
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Found, Log
from sharecore.waiting import Begun, Gather, Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages

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


def list_offsets(
    context: RequestContext, request: messages.ListOffsetsRequest
) -> Result[messages.ListOffsetsResponse]:
    """Return offsets by position or by time."""
    return context.run(_look_up_offsets(context, request))


def _look_up_offsets(
    context: RequestContext, request: messages.ListOffsetsRequest
) -> Steps[Begun[messages.ListOffsetsResponse]]:
    names = (topic.name for topic in request.topics)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    known: Gather[tuple[str, int]] = Gather()
    asked_for = set[tuple[str, int]]()
    for topic in request.topics:
        if topic.name not in seen:
            continue
        for asked in topic.partitions:
            partition = topic.name, asked.partition_index
            log = None if partition in asked_for else _log(context, request, *partition)
            if log is not None:
                asked_for.add(partition)
                known.run(partition, _ask, log, asked.timestamp)
            yield
    return context.broker.turns.after(known, lambda: _answers(context, request, seen, known.outcomes))


def _log(context: RequestContext, request: messages.ListOffsetsRequest, name: str, index: int) -> Log | None:
    log = context.broker.topics.log(name, index)
    return None if log is None else log.isolate(committed=request.isolation_level == _READ_COMMITTED)


def _by_time(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == _MAX_TIMESTAMP


def _ask(log: Log, timestamp: int, done: Callable[[Found | KafkaError | None], None]) -> None:
    """Look up a time in a log, or wait until its start and end are known."""
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
    context: RequestContext,
    request: messages.ListOffsetsRequest,
    seen: Container[str],
    known: Mapping[tuple[str, int], Found | KafkaError | None],
) -> Steps[messages.ListOffsetsResponse]:
    asked: dict[str, dict[int, list[messages.ListOffsetsPartition]]] = {}
    answers: list[messages.ListOffsetsTopicResponse] = []
    for topic in request.topics:
        for part in topic.partitions:
            if topic.name in seen:
                asked.setdefault(topic.name, {}).setdefault(part.partition_index, []).append(part)
            yield
        if topic.partitions and topic.name not in seen:
            # as often as named; a topic visible to the client appears once
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            partitions = [_answer_offset(part.partition_index, denied) for part in topic.partitions]
            answers.append({"name": topic.name, "partitions": partitions})
        yield
    for name, by_index in asked.items():
        partitions = []
        for index, parts in by_index.items():
            found = _found(context, request, name, parts[-1], len(parts), known)
            partitions.append(_answer_offset(index, found))
            yield
        answers.append({"name": name, "partitions": partitions})
    return {"topics": answers}


def _answer_offset(index: int, found: Found | ErrorCode | None) -> messages.ListOffsetsPartitionResponse:
    code = ErrorCode.NONE
    if isinstance(found, ErrorCode):
        code, found = found, None
    offset, timestamp, epoch = found or (-1, -1, -1)
    return {
        "partition_index": index,
        "error_code": code,
        "offset": offset,
        "timestamp": timestamp,
        "leader_epoch": epoch,
    }


def _found(
    context: RequestContext,
    request: messages.ListOffsetsRequest,
    name: str,
    asked: messages.ListOffsetsPartition,
    times: int,
    known: Mapping[tuple[str, int], Found | KafkaError | None],
) -> Found | ErrorCode | None:
    """Return the result for a partition visible to the client; None if no such offset exists."""
    log = _log(context, request, name, asked.partition_index)
    looked_up = known.get((name, asked.partition_index))
    if times > 1:
        return ErrorCode.INVALID_REQUEST
    if asked.timestamp < 0 and context.api_version < _SINCE_VERSION.get(asked.timestamp, 1 << 15):
        return ErrorCode.UNSUPPORTED_VERSION
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if isinstance(looked_up, KafkaError):
        return looked_up.code
    if asked.current_leader_epoch > context.broker.cluster.leader(log.topic_id, log.index).epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if asked.current_leader_epoch < NO_EPOCH:
        return ErrorCode.FENCED_LEADER_EPOCH
    end = log.last_stable_offset if request.isolation_level == _READ_COMMITTED else log.high_watermark
    if _by_time(asked.timestamp):
        return looked_up if looked_up is not None and looked_up[0] < end else None
    return _by_place(log, asked.timestamp, end)


def _by_place(log: Log, timestamp: int, end: int) -> Found | None:
    if timestamp == _LATEST:
        return end, -1, 0
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start_offset, -1, 0
    return None


def offset_for_leader_epoch(
    context: RequestContext, request: messages.OffsetForLeaderEpochRequest
) -> Result[messages.OffsetForLeaderEpochResponse]:
    """Return the end of a leader epoch: every epoch up to the current one ends where the log does."""
    return context.run(_look_up_epochs(context, request))


def _look_up_epochs(
    context: RequestContext, request: messages.OffsetForLeaderEpochRequest
) -> Steps[messages.OffsetForLeaderEpochResponse]:
    # a replica may request all of them
    sees_all = context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, quiet=True)
    names = () if sees_all else (topic.topic for topic in request.topics)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    topics: list[messages.OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        partitions: list[messages.OffsetForLeaderEpochEpochEndOffset] = []
        for asked in topic.partitions:
            partitions.append(
                _answer_epoch(context, topic.topic, asked, seen=sees_all or topic.topic in seen)
            )
            yield
        topics.append({"topic": topic.topic, "partitions": partitions})
        yield
    return {"topics": topics}


def _answer_epoch(
    context: RequestContext, name: str, asked: messages.OffsetForLeaderPartition, *, seen: bool
) -> messages.OffsetForLeaderEpochEpochEndOffset:
    answer: messages.OffsetForLeaderEpochEpochEndOffset = {
        "partition": asked.partition,
        "leader_epoch": -1,
        "end_offset": -1,
    }
    if not seen:
        return answer | {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    log = context.broker.topics.log(name, asked.partition)
    if log is None:
        return answer | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    epoch = context.broker.cluster.leader(log.topic_id, log.index).epoch
    refusal = wrong_epoch(asked.current_leader_epoch, epoch)
    if refusal is not None:
        answer["error_code"] = refusal
    elif 0 <= asked.leader_epoch <= epoch:
        # a change of the leader moves no log back: every epoch ends where the log does
        answer["leader_epoch"], answer["end_offset"] = asked.leader_epoch, log.high_watermark
    return answer
