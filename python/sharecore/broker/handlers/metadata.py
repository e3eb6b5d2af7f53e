"""Metadata: who leads which partition, and topics made when a client first asks for them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any
from uuid import UUID

from sharecore.broker.cluster import describe_partition
from sharecore.broker.context import NOT_REQUESTED, RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS, check_collision, check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Topic

_ALL_WHEN_EMPTY_BEFORE = 1
_AUTO_CREATION_ASKED_SINCE = 4
_IDS_UNUSED = (10, 11)
"""Versions that have a place for ids, and are answered by names alone."""
_IDS_SINCE = 12


def handle(context: RequestContext, request: Any) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    broker = context.broker
    asked = request.topics
    if asked is None or (not asked and context.api_version < _ALL_WHEN_EMPTY_BEFORE):
        seen = [
            topic
            for topic in broker.topics
            if context.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, quiet=True)
        ]
        return _answer(context, request, [_describe(context, request, topic) for topic in seen])
    if context.api_version in _IDS_UNUSED and any(
        topic.name is None or topic.topic_id is not None for topic in asked
    ):
        return _refused(asked)
    if context.api_version >= _IDS_SINCE:
        ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id is not None)
        if ids:  # they count alone then
            return _answer(context, request, [_by_id(context, request, topic_id) for topic_id in ids])
    asked = dict.fromkeys(topic.name for topic in asked)
    missing = [
        name
        for name in asked
        if name is not None
        and broker.topics.get(name) is None
        and context.may(Operation.DESCRIBE, ResourceType.TOPIC, name, quiet=True)
    ]
    may_create = (
        broker.config.auto_create_topics_enable
        and broker.config.default_replication_factor == 1
        and (context.api_version < _AUTO_CREATION_ASKED_SINCE or request.allow_auto_topic_creation)
    )
    if missing and may_create:
        return _create_and_answer(context, request, missing)
    return _answer(context, request, [_look_up(context, request, name) for name in asked])


def _refused(asked: Any) -> dict[str, Any]:
    """No topic is told of, and nothing else."""
    topics = [
        {"error_code": ErrorCode.INVALID_REQUEST, "name": topic.name or "", "topic_id": topic.topic_id}
        for topic in asked
    ]
    return {
        "brokers": [],
        "cluster_id": None,
        "controller_id": -1,
        "topics": topics,
        "cluster_authorized_operations": NOT_REQUESTED,
    }


async def _create_and_answer(context: RequestContext, request: Any, names: list[str]) -> dict[str, Any]:
    topics, mutations = context.broker.topics, context.mutations(strict_since=0)
    partitions = context.broker.config.num_partitions
    refused: dict[str, ErrorCode] = {}
    for name in names:
        if topics.get(name) is not None or name in INTERNAL_TOPICS:
            continue
        try:
            if not context.may(Operation.CREATE, ResourceType.CLUSTER):
                context.require(Operation.CREATE, ResourceType.TOPIC, name)
            check_name(name)
            check_collision(name, topics.names())
            mutations.take(partitions)
            await topics.create(name, partitions)
        except KafkaError as error:
            if error.code not in (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED):
                refused[name] = error.code
    return _answer(
        context,
        request,
        [
            _look_up(context, request, name, refused.get(name))
            for name in dict.fromkeys(topic.name for topic in request.topics)
        ],
    )


def _answer(context: RequestContext, request: Any, topics: list[dict[str, Any]]) -> dict[str, Any]:
    broker = context.broker
    return {
        "brokers": [node._asdict() for node in broker.cluster.nodes(context.connection.listener)],
        "cluster_id": broker.identity.cluster_id,
        "controller_id": broker.cluster.controller(),
        "topics": topics,
        "cluster_authorized_operations": (
            _cluster_operations(context)
            if getattr(request, "include_cluster_authorized_operations", False)
            else NOT_REQUESTED
        ),
    }


def _cluster_operations(context: RequestContext) -> int:
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return context.operations(ResourceType.CLUSTER)


def _by_id(context: RequestContext, request: Any, topic_id: UUID) -> dict[str, Any]:
    topic = context.broker.topics.by_id(topic_id)
    if topic is None:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "name": None, "topic_id": topic_id}
    if not context.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return {"error_code": code, "name": None, "topic_id": topic_id}
    return _describe(context, request, topic)


def _look_up(
    context: RequestContext, request: Any, name: str | None, refusal: ErrorCode | None = None
) -> dict[str, Any]:
    if name is None:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "name": None}
    if not context.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
        return {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "name": name}
    topic = context.broker.topics.get(name)
    if topic is not None:
        return _describe(context, request, topic)
    if refusal is None:
        refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            check_name(name)
        except KafkaError as error:
            refusal = error.code
    if refusal is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return {"error_code": refusal, "name": name}
    return {
        "error_code": refusal,
        "name": name,
        "is_internal": name in INTERNAL_TOPICS,
        "topic_authorized_operations": _operations(context, request, name),
    }


def _operations(context: RequestContext, request: Any, name: str) -> int:
    asked = request.include_topic_authorized_operations
    return context.operations(ResourceType.TOPIC, name) if asked else NOT_REQUESTED


def _describe(context: RequestContext, request: Any, topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "partitions": [
            describe_partition(context.broker.cluster, topic.topic_id, index)
            for index in range(len(topic.partitions))
        ],
        "topic_authorized_operations": _operations(context, request, topic.name),
    }
