"""Groups are described to those who may see the topics of their members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.security.acl import Operation, ResourceType

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def sees_topics(context: RequestContext, members: Iterable[dict[str, Any]]) -> bool:
    """Whether the client may see every topic that members have partitions of, or shall have.

    Args:
        members: as the answer has them.
    """
    names = {
        name
        for member in members
        for name in (
            *_names(member["assignment"]),
            *_names(member.get("target_assignment")),
        )
    }
    return all(context.may(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


def _names(assignment: Any) -> list[str]:
    return [each["topic_name"] for each in assignment["topic_partitions"]] if assignment else []
