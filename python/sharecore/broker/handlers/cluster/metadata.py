"""Topics and their leaders, as clients see them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.broker.cluster import describe_partition
from sharecore.broker.requests.context import NOT_REQUESTED, RequestContext, Result
from sharecore.broker.topic_rules import check_collision, check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Topic
from sharecore.topic_names import INTERNAL_TOPICS
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages

_ALL_WHEN_EMPTY_BEFORE = 1
_AUTO_CREATION_ASKED_SINCE = 4
_IDS_UNUSED = (10, 11)
"""Versions with a field for ids that is ignored: only names count."""
_IDS_SINCE = 12


def metadata(context: RequestContext, request: messages.MetadataRequest) -> Result[messages.MetadataResponse]:
    """Return topics with their partition leaders, and the brokers.

    Create missing topics if that is allowed.
    """
    broker = context.broker
    asked = request.topics
    if asked is None or (not asked and context.api_version < _ALL_WHEN_EMPTY_BEFORE):
        return context.run(_all(context, request))
    if context.api_version in _IDS_UNUSED and any(
        topic.name is None or topic.topic_id is not None for topic in asked
    ):
        return _refused_metadata(asked)
    if context.api_version >= _IDS_SINCE:
        ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id is not None)
        if ids:  # only names count in these versions
            return context.run(_by_ids(context, request, ids))
    named = dict.fromkeys(topic.name for topic in asked)
    may_create = (
        broker.config.auto_create_topics_enable
        and broker.config.default_replication_factor == 1
        and (context.api_version < _AUTO_CREATION_ASKED_SINCE or request.allow_auto_topic_creation)
    )
    if may_create and any(name is not None and broker.topics.get(name) is None for name in named):
        return _create_and_answer(context, request, named)
    return context.run(_by_names(context, request, named, {}))


def _all(context: RequestContext, request: messages.MetadataRequest) -> Steps[messages.MetadataResponse]:
    names = context.broker.topics.names()
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names, quiet=True)
    described: list[messages.MetadataResponseTopic] = []
    for topic in context.broker.topics:
        if topic.name in seen:
            described.append((yield from _describe_topic(context, request, topic)))
        yield
    return _answer(context, request, described)


def _by_ids(
    context: RequestContext, request: messages.MetadataRequest, ids: Iterable[UUID]
) -> Steps[messages.MetadataResponse]:
    topics = context.broker.topics
    names = (topic.name for topic_id in ids if (topic := topics.by_id(topic_id)) is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    described: list[messages.MetadataResponseTopic] = []
    for topic_id in ids:
        described.append((yield from _by_id(context, request, topic_id, seen)))
        yield
    return _answer(context, request, described)


def _by_names(
    context: RequestContext,
    request: messages.MetadataRequest,
    named: Iterable[str | None],
    refused: Mapping[str | None, ErrorCode],
) -> Steps[messages.MetadataResponse]:
    names = (name for name in named if name is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    described: list[messages.MetadataResponseTopic] = []
    for name in named:
        described.append((yield from _look_up(context, request, name, seen, refused.get(name))))
        yield
    return _answer(context, request, described)


def _refused_metadata(asked: Iterable[messages.MetadataRequestTopic]) -> messages.MetadataResponse:
    """Return a refusal of each topic."""
    topics: list[messages.MetadataResponseTopic] = [
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


async def _create_and_answer(
    context: RequestContext, request: messages.MetadataRequest, named: Iterable[str | None]
) -> messages.MetadataResponse:
    topics = context.broker.topics
    missing = [name for name in named if name is not None and topics.get(name) is None]
    seen = await context.finish(context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, missing, quiet=True))
    missing = [name for name in missing if name in seen and name not in INTERNAL_TOPICS]
    creates_all = not missing or context.may(Operation.CREATE, ResourceType.CLUSTER, quiet=True)
    wanted = () if creates_all else missing
    creatable = await context.finish(context.may_each(Operation.CREATE, ResourceType.TOPIC, wanted))
    mutations, pace = context.mutations(strict_since=0), context.broker.turns.pace()
    partitions = context.broker.config.num_partitions
    refused: dict[str | None, ErrorCode] = {}
    for name in missing:
        await pace.step()
        if topics.get(name) is not None:
            continue
        if not creates_all and name not in creatable:
            refused[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            continue
        try:
            check_name(name)
            check_collision(name, topics)
            mutations.take(partitions)
            await topics.create(name, partitions)
        except KafkaError as error:
            if error.code not in (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED):
                refused[name] = error.code
    return await context.finish(_by_names(context, request, named, refused))


def _answer(
    context: RequestContext, request: messages.MetadataRequest, topics: list[messages.MetadataResponseTopic]
) -> messages.MetadataResponse:
    broker = context.broker
    return {
        "brokers": [
            {"node_id": node_id, "host": host, "port": port, "rack": rack}
            for node_id, host, port, rack in broker.cluster.nodes(context.connection.listener)
        ],
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


def _by_id(
    context: RequestContext, request: messages.MetadataRequest, topic_id: UUID, seen: Container[str]
) -> Steps[messages.MetadataResponseTopic]:
    topic = context.broker.topics.by_id(topic_id)
    if topic is None:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "name": None, "topic_id": topic_id}
    if topic.name not in seen:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return {"error_code": code, "name": None, "topic_id": topic_id}
    return (yield from _describe_topic(context, request, topic))


def _look_up(
    context: RequestContext,
    request: messages.MetadataRequest,
    name: str | None,
    seen: Container[str],
    refusal: ErrorCode | None,
) -> Steps[messages.MetadataResponseTopic]:
    if name is None:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "name": None}
    if name not in seen:
        return {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "name": name}
    topic = context.broker.topics.get(name)
    if topic is not None:
        return (yield from _describe_topic(context, request, topic))
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


def _operations(context: RequestContext, request: messages.MetadataRequest, name: str) -> int:
    asked = request.include_topic_authorized_operations
    return context.operations(ResourceType.TOPIC, name) if asked else NOT_REQUESTED


def _describe_topic(
    context: RequestContext, request: messages.MetadataRequest, topic: Topic
) -> Steps[messages.MetadataResponseTopic]:
    partitions = []
    for index in range(len(topic.partitions)):
        partitions.append(describe_partition(context.broker.cluster, topic.topic_id, index))
        yield
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "partitions": partitions,
        "topic_authorized_operations": _operations(context, request, topic.name),
    }


def describe_topic_partitions(
    context: RequestContext, request: messages.DescribeTopicPartitionsRequest
) -> Result[messages.DescribeTopicPartitionsResponse]:
    """Return topics in name order, a page at a time (KIP-966)."""
    return context.run(_describe_page(context, request))


def _describe_page(
    context: RequestContext, request: messages.DescribeTopicPartitionsRequest
) -> Steps[messages.DescribeTopicPartitionsResponse]:
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
    answers: list[messages.DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        topic = topics.get(name)
        yield
        if name not in seen:
            answers.append(_refused_page(name))
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
                    {
                        **describe_partition(context.broker.cluster, topic.topic_id, index),
                        "eligible_leader_replicas": [],
                        "last_known_elr": [],
                    }
                    for index in indexes
                ],
                "topic_authorized_operations": context.operations(ResourceType.TOPIC, name),
            }
        )
        if indexes.stop < len(topic.partitions):
            return {"topics": answers, "next_cursor": {"topic_name": name, "partition_index": indexes.stop}}
    return {"topics": answers, "next_cursor": None}


def _refused_page(name: str) -> messages.DescribeTopicPartitionsResponseTopic:
    return {
        "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "name": name,
        "is_internal": name in INTERNAL_TOPICS,
    }


def _unknown(context: RequestContext, name: str) -> messages.DescribeTopicPartitionsResponseTopic:
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
