"""What OffsetFetch tells: offsets of topics that the client may see, without the cluster's leader epochs.

Clients hold the epoch of an offset against that of the partition's leader, which is the tier's. A topic that
clients must not reach has no offsets, as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.shapes import Keys
from sharecore.waiting import Steps

_GROUP_ERROR_SINCE = 2
KEYS = Keys("groups", "groups", "group_id", "group_id", failed={"topics": []})


def tell_group(forwarder: RequestForwarder, context: RequestContext, request: Any, answer: Any) -> Steps[Any]:
    """Return the answer about one group, as versions before 8 have it."""
    topics = yield from _topics(forwarder, context, answer.topics, everything=request.topics is None)
    return answer._replace(topics=topics)


def refuse_group(context: RequestContext, request: Any, code: ErrorCode) -> dict[str, Any]:
    """Return the refusal of one group: an error of each partition where a version has none of the group."""
    if context.api_version >= _GROUP_ERROR_SINCE:
        return {"topics": [], "error_code": code}
    absent = {"committed_offset": -1, "metadata": "", "error_code": code}
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [{"partition_index": index, **absent} for index in topic.partition_indexes],
            }
            for topic in request.topics or ()
        ]
    }


def tell_groups_own(
    forwarder: RequestForwarder, context: RequestContext, asked: Any, answer: Any
) -> Steps[Any]:
    """Return the part of an answer that is about one group."""
    everything = asked is None or asked.topics is None
    topics = yield from _topics(forwarder, context, answer.topics, everything=everything)
    return answer._replace(topics=topics)


def _topics(
    forwarder: RequestForwarder, context: RequestContext, topics: Any, *, everything: bool
) -> Steps[list[Any]]:
    """Return the topics that are told; the unseen are left out where nobody asked for them by name."""
    names = (name for topic in topics if (name := _name(context, topic)) is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    told = []
    for topic in topics:
        yield
        code = _refusal(forwarder, _name(context, topic), seen)
        if code is not None and everything:
            continue
        parts = []
        for part in topic.partitions:
            parts.append(_part(part, code))
            yield
        told.append(topic._replace(partitions=parts))
    return told


def _name(context: RequestContext, topic: Any) -> str | None:
    """Return the name of a topic that an answer names or identifies; None of one that is not there."""
    name: str | None = getattr(topic, "name", None)
    if name is not None or topic.topic_id is None:
        return name
    found = context.broker.topics.by_id(topic.topic_id)
    return None if found is None else found.name


def _refusal(forwarder: RequestForwarder, name: str | None, seen: Container[str]) -> ErrorCode | None:
    """Return the error of a topic whose offsets the client is not told; None where it is told them."""
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if name not in seen:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if forwarder.own.hides(name) or name in forwarder.own.closed else None


def _part(part: Any, refusal: ErrorCode | None) -> Any:
    changed: dict[str, Any] = (
        {"committed_leader_epoch": -1} if "committed_leader_epoch" in part._fields else {}
    )
    if refusal is not None:
        changed |= {"committed_offset": -1, "metadata": "", "error_code": refusal}
    return part._replace(**changed)
