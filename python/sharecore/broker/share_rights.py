"""Which partitions of a share session its client may read."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.session import SharePartitionId


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
    return {
        partition: KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for partition in partitions
        if not may_read(context, partition[0])
    }
