"""Whether a client may be a member of a share group here, and which partitions of its session it may read."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.session import SharePartitionId
from sharecore.waiting import exhaust


def check_share_group(context: RequestContext, group_id: str) -> None:
    """Raise KafkaError where share groups are not served, or where the client may not read the group."""
    broker = context.broker
    if not broker.features.has_share_groups:
        broker.features.check_share_groups()
    if broker.authorizer is not None:
        context.require(Operation.READ, ResourceType.GROUP, group_id)


def may_read(context: RequestContext, topic_id: UUID) -> bool:
    """Whether the client may read a topic; one that does not exist is no secret."""
    if context.broker.authorizer is None:
        return True
    topic = context.broker.topics.by_id(topic_id)
    return topic is None or context.may(Operation.READ, ResourceType.TOPIC, topic.name)


def hidden(
    context: RequestContext, partitions: Iterable[SharePartitionId]
) -> dict[SharePartitionId, KafkaError]:
    """Partitions that the client may not read, and what it is told of them; none without an authorizer."""
    if context.broker.authorizer is None:
        return {}
    find = context.broker.topics.by_id
    partitions = list(partitions)
    ids = {topic_id for topic_id, _ in partitions}
    names = {each: topic.name for each in ids if (topic := find(each)) is not None}
    readable = exhaust(context.may_each(Operation.READ, ResourceType.TOPIC, sorted(names.values())))
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return {each: denied for each in partitions if each[0] in names and names[each[0]] not in readable}
