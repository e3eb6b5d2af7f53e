"""Restriction of group descriptions to clients that may describe the members' topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sharecore.broker.requests.context import RequestContext
from sharecore.security.acl import Operation, ResourceType

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def sees_topics(context: RequestContext, members: Iterable[dict[str, Any]]) -> bool:
    """Return whether the client may describe every topic of the members' assignments.

    Args:
        members: the members in the answer.
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
