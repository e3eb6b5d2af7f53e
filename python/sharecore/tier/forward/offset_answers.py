"""What OffsetFetch tells: offsets of topics that the client may see, without the cluster's leader epochs.

Clients hold the epoch of an offset against that of the partition's leader, which is the tier's.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.shapes import Keys

KEYS = Keys("groups", "groups", "group_id", "group_id", failed={"topics": []})


def tell_group(context: RequestContext, request: Any, answer: Any) -> Any:
    """The answer about one group, as versions before 8 have it."""
    return answer._replace(topics=_topics(context, answer.topics, everything=request.topics is None))


def tell_groups_own(context: RequestContext, request: Any, answer: Any) -> Any:
    """The part of an answer that is about one group."""
    asked = next((each for each in request.groups if each.group_id == answer.group_id), None)
    everything = asked is None or asked.topics is None
    return answer._replace(topics=_topics(context, answer.topics, everything=everything))


def _topics(context: RequestContext, topics: Any, *, everything: bool) -> list[Any]:
    """The topics that are told; the unseen are left out where nobody asked for them by name."""
    told = []
    for topic in topics:
        seen = _is_seen(context, topic)
        if not seen and everything:
            continue
        parts = [_part(part, seen=seen) for part in topic.partitions]
        told.append(topic._replace(partitions=parts))
    return told


def _is_seen(context: RequestContext, topic: Any) -> bool:
    if context.broker.authorizer is None:
        return True
    name = getattr(topic, "name", None)
    if name is None:
        found = None if topic.topic_id is None else context.broker.topics.by_id(topic.topic_id)
        name = None if found is None else found.name
    return name is None or context.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _part(part: Any, *, seen: bool) -> Any:
    changed: dict[str, Any] = (
        {"committed_leader_epoch": -1} if "committed_leader_epoch" in part._fields else {}
    )
    if not seen:
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        changed |= {"committed_offset": -1, "metadata": "", "error_code": refused}
    return part._replace(**changed)
