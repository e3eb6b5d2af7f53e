"""Restriction of group descriptions to clients that may describe the members' topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sharecore.broker.requests.context import RequestContext
from sharecore.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from sharecore.protocol import messages

    _Assignment: TypeAlias = messages.ConsumerGroupDescribeAssignment | messages.ShareGroupDescribeAssignment

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def sees_topics(context: RequestContext, assignments: Iterable[_Assignment]) -> bool:
    """Return whether the client may describe every topic of the members' assignments."""
    names = {each["topic_name"] for assignment in assignments for each in assignment["topic_partitions"]}
    return all(context.may(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names)
