"""DescribeTopicPartitions: topics in the order of their names, a page at a time (KIP-966)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sharecore.broker.cluster import NOBODY, Cluster
from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS, check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    topics = context.broker.topics
    names = sorted({topic.name for topic in request.topics}) or [
        name
        for name in sorted(topics.names())
        if context.may(Operation.DESCRIBE, ResourceType.TOPIC, name, quiet=True)
    ]
    first_name, first_partition = "", 0
    if request.cursor is not None:
        first_name, first_partition = request.cursor.topic_name, max(request.cursor.partition_index, 0)
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
                    _partition(context.broker.cluster, topic.topic_id, index) for index in indexes
                ],
                "topic_authorized_operations": context.operations(ResourceType.TOPIC, name),
            }
        )
        if indexes.stop < len(topic.partitions):
            return {"topics": answers, "next_cursor": {"topic_name": name, "partition_index": indexes.stop}}
    return {"topics": answers, "next_cursor": None}


def _partition(cluster: Cluster, topic_id: UUID, index: int) -> dict[str, Any]:
    leader = cluster.leader(topic_id, index)
    led = leader.node_id != NOBODY
    return {
        "error_code": ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        "partition_index": index,
        "leader_id": leader.node_id,
        "leader_epoch": leader.epoch,
        "replica_nodes": [leader.node_id] if led else [],
        "isr_nodes": [leader.node_id] if led else [],
        "eligible_leader_replicas": [],
        "last_known_elr": [],
    }


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
