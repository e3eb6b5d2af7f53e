"""DeleteRecords: moves the start of logs."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log

_HIGH_WATERMARK = -1


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    deleting = [
        (
            topic.name,
            [(asked.partition_index, _begin(context, topic.name, asked)) for asked in topic.partitions],
        )
        for topic in request.topics
        if topic.partitions
    ]
    return {
        "topics": [
            {"name": name, "partitions": [await _end(index, begun) for index, begun in partitions]}
            for name, partitions in deleting
        ]
    }


def _begin(context: RequestContext, name: str, asked: Any) -> tuple[Log, Any] | ErrorCode:
    """Stages the deletion of one partition's records, so that all of a request share a commit."""
    log = context.broker.topics.log(name, asked.partition_index)
    if not context.may(Operation.DELETE, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
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
