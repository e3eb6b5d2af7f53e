"""Permissions of share-group members: on the group, and on the partitions of a session."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.session import SharePartitionId
from sharecore.waiting import exhaust


def check_share_group(context: RequestContext, group_id: str) -> None:
    """Raise KafkaError if share groups are not served, or the client may not read the group."""
    broker = context.broker
    if not broker.features.has_share_groups:
        broker.features.check_share_groups()
    if broker.authorizer is not None:
        context.require(Operation.READ, ResourceType.GROUP, group_id)


def may_read(context: RequestContext, topic_id: UUID) -> bool:
    """Return whether the client may read a topic; unknown topics are not secret."""
    if context.broker.authorizer is None:
        return True
    topic = context.broker.topics.by_id(topic_id)
    return topic is None or context.may(Operation.READ, ResourceType.TOPIC, topic.name)


def hidden(
    context: RequestContext, partitions: Iterable[SharePartitionId]
) -> dict[SharePartitionId, KafkaError]:
    """Return the partitions that the client may not read, with errors; empty without an authorizer."""
    if context.broker.authorizer is None:
        return {}
    find = context.broker.topics.by_id
    partitions = list(partitions)
    ids = {topic_id for topic_id, _ in partitions}
    names = {each: topic.name for each in ids if (topic := find(each)) is not None}
    readable = exhaust(context.may_each(Operation.READ, ResourceType.TOPIC, sorted(names.values())))
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return {each: denied for each in partitions if each[0] in names and names[each[0]] not in readable}
