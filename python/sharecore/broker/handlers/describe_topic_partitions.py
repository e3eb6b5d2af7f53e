"""DescribeTopicPartitions: topics in name order, in pages (KIP-966)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.cluster import describe_partition
from sharecore.broker.context import RequestContext, Result
from sharecore.broker.topic_rules import INTERNAL_TOPICS, check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_NO_ELECTIONS: dict[str, Any] = {"eligible_leader_replicas": [], "last_known_elr": []}


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_describe(context, request))


def _describe(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    topics = context.broker.topics
    named = {topic.name for topic in request.topics}
    names = sorted(named or topics.names())
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names, quiet=not named)
    if not named:
        names = [name for name in names if name in seen]
    first_name, first_partition = "", 0
    if request.cursor is not None:
        first_name, first_partition = request.cursor.topic_name, request.cursor.partition_index
        if first_partition < 0 or (named and first_name not in named):
            return {
                "topics": [
                    {"name": topic.name, "error_code": ErrorCode.INVALID_REQUEST} for topic in request.topics
                ]
            }
        names = [name for name in names if name >= first_name]
    room = min(request.response_partition_limit, context.broker.config.max_request_partition_size_limit)
    room = max(room, 1)
    answers: list[dict[str, Any]] = []
    for name in names:
        topic = topics.get(name)
        yield
        if name not in seen:
            answers.append(_refused(name))
            continue
        if not room:
            return {"topics": answers, "next_cursor": {"topic_name": name, "partition_index": 0}}
        if topic is None:
            answers.append(_unknown(context, name))
            continue
        start = first_partition if name == first_name else 0
        indexes = range(start, min(start + room, len(topic.partitions)))
        room -= len(indexes)
        answers.append(
            {
                "name": name,
                "topic_id": topic.topic_id,
                "is_internal": name in INTERNAL_TOPICS,
                "partitions": [
                    describe_partition(context.broker.cluster, topic.topic_id, index) | _NO_ELECTIONS
                    for index in indexes
                ],
                "topic_authorized_operations": context.operations(ResourceType.TOPIC, name),
            }
        )
        if indexes.stop < len(topic.partitions):
            return {"topics": answers, "next_cursor": {"topic_name": name, "partition_index": indexes.stop}}
    return {"topics": answers, "next_cursor": None}


def _refused(name: str) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "name": name,
        "is_internal": name in INTERNAL_TOPICS,
    }


def _unknown(context: RequestContext, name: str) -> dict[str, Any]:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(name)
    except KafkaError as error:
        code = error.code
    return {
        "error_code": code,
        "name": name,
        "topic_authorized_operations": context.operations(ResourceType.TOPIC, name),
    }
