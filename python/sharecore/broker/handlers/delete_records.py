"""DeleteRecords: moves log start offsets."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log
from sharecore.waiting import Steps

_HIGH_WATERMARK = -1


_Begun = tuple[Log, Any] | ErrorCode


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    deleting = await context.finish(_begin_all(context, request))
    pace = context.broker.turns.pace()
    topics = []
    for name, begun in deleting.items():
        partitions = []
        for each in begun.items():
            partitions.append(await _end(*each))
            await pace.step()
        topics.append({"name": name, "partitions": partitions})
    return {"topics": topics}


def _begin_all(context: RequestContext, request: Any) -> Steps[dict[str, dict[int, _Begun]]]:
    """Stage what a request asks for; if a partition repeats, the last entry wins."""
    names = (topic.name for topic in request.topics if topic.partitions)
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.TOPIC, names)
    last: dict[str, dict[int, Any]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            last.setdefault(topic.name, {})[asked.partition_index] = asked
            yield
    deleting: dict[str, dict[int, _Begun]] = {}
    for name, partitions in last.items():
        begun = deleting[name] = {}
        for index, asked in partitions.items():
            begun[index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if name in deletable:
                begun[index] = _begin(context, name, asked)
            yield
    return deleting


def _begin(context: RequestContext, name: str, asked: Any) -> _Begun:
    """Stage the deletion of one partition's records, so that a request's deletions share a commit."""
    log = context.broker.topics.log(name, asked.partition_index)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if "delete" not in context.broker.topic_configs.get(name).cleanup_policy:
        return ErrorCode.POLICY_VIOLATION
    before = log.high_watermark if asked.offset == _HIGH_WATERMARK else asked.offset
    if not 0 <= before <= log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    try:
        return log, log.delete_records(before)
    except KafkaError as error:
        return error.code


async def _end(index: int, begun: _Begun) -> dict[str, Any]:
    if isinstance(begun, ErrorCode):
        return {"partition_index": index, "low_watermark": -1, "error_code": begun}
    log, ticket = begun
    try:
        await ticket
    except KafkaError as error:
        return {"partition_index": index, "low_watermark": -1, "error_code": error.code}
    return {"partition_index": index, "low_watermark": log.start_offset}
