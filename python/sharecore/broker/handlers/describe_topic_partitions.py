"""DescribeTopicPartitions: topics in the order of their names, a page at a time (KIP-966)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.cluster import describe_partition
from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS, check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType

_NO_ELECTIONS: dict[str, Any] = {"eligible_leader_replicas": [], "last_known_elr": []}


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    topics = context.broker.topics
    names = sorted({topic.name for topic in request.topics}) or [
        name
        for name in sorted(topics.names())
        if context.may(Operation.DESCRIBE, ResourceType.TOPIC, name, quiet=True)
    ]
    first_name, first_partition = "", 0
    if request.cursor is not None:
        first_name, first_partition = request.cursor.topic_name, request.cursor.partition_index
        if first_partition < 0 or (request.topics and first_name not in names):
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
        if not context.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
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
