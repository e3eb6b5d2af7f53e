"""DeleteRecords: moves the start of logs."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log
from sharecore.waiting import Steps

_HIGH_WATERMARK = -1


_Begun = tuple[int, tuple[Log, Any] | ErrorCode]


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    deleting = await context.finish(_begin_all(context, request))
    pace = context.broker.turns.pace()
    topics = []
    for name, begun in deleting:
        partitions = []
        for each in begun:
            partitions.append(await _end(*each))
            await pace.step()
        topics.append({"name": name, "partitions": partitions})
    return {"topics": topics}


def _begin_all(context: RequestContext, request: Any) -> Steps[list[tuple[str, list[_Begun]]]]:
    names = (topic.name for topic in request.topics if topic.partitions)
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.TOPIC, names)
    deleting = []
    for topic in request.topics:
        begun: list[_Begun] = []
        for asked in topic.partitions:
            outcome: tuple[Log, Any] | ErrorCode = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if topic.name in deletable:
                outcome = _begin(context, topic.name, asked)
            begun.append((asked.partition_index, outcome))
            yield
        if begun:
            deleting.append((topic.name, begun))
    return deleting


def _begin(context: RequestContext, name: str, asked: Any) -> tuple[Log, Any] | ErrorCode:
    """Stages the deletion of one partition's records, so that all of a request share a commit."""
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


async def _end(index: int, begun: tuple[Log, Any] | ErrorCode) -> dict[str, Any]:
    if isinstance(begun, ErrorCode):
        return {"partition_index": index, "low_watermark": -1, "error_code": begun}
    log, ticket = begun
    try:
        await ticket
    except KafkaError as error:
        return {"partition_index": index, "low_watermark": -1, "error_code": error.code}
    return {"partition_index": index, "low_watermark": log.start_offset}
