"""Adapts OffsetFetch responses: only visible topics, without the cluster's leader epochs.

Clients compare an offset's epoch with that of the partition's leader, which is the tier's. A hidden topic has
no offsets, like a missing one.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, TypeVar

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.shapes import Keys
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from uuid import UUID

    from sharecore.protocol import messages, received

Topic = TypeVar("Topic", "received.OffsetFetchResponseTopic", "received.OffsetFetchResponseTopics")
Part = TypeVar("Part", "received.OffsetFetchResponsePartition", "received.OffsetFetchResponsePartitions")
_GROUP_ERROR_SINCE = 2
KEYS = Keys("groups", "groups", "group_id", "group_id", failed={"topics": []})


def adapt_group(
    forwarder: RequestForwarder,
    context: RequestContext,
    request: messages.OffsetFetchRequest,
    answer: received.OffsetFetchResponse,
) -> Steps[received.OffsetFetchResponse]:
    """Return the response about one group, in the form of versions before 8."""
    topics = yield from _topics(forwarder, context, answer.topics, everything=request.topics is None)
    return answer._replace(topics=topics)


def refuse_group(
    context: RequestContext, request: messages.OffsetFetchRequest, code: ErrorCode
) -> messages.OffsetFetchResponse:
    """Return an error for one group: for each partition if the version has no group error."""
    if context.api_version >= _GROUP_ERROR_SINCE:
        return {"topics": [], "error_code": code}
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": index, "committed_offset": -1, "metadata": "", "error_code": code}
                    for index in topic.partition_indexes
                ],
            }
            for topic in request.topics or ()
        ]
    }


def adapt_groups_own(
    forwarder: RequestForwarder,
    context: RequestContext,
    asked: messages.OffsetFetchRequestGroup | None,
    answer: received.OffsetFetchResponseGroup,
) -> Steps[received.OffsetFetchResponseGroup]:
    """Return the part of a response about one group."""
    everything = asked is None or asked.topics is None
    topics = yield from _topics(forwarder, context, answer.topics, everything=everything)
    return answer._replace(topics=topics)


def _topics(
    forwarder: RequestForwarder, context: RequestContext, topics: Sequence[Topic], *, everything: bool
) -> Steps[list[Topic]]:
    """Return the visible topics; hidden ones are left out unless they were requested by name."""
    names = (name for topic in topics if (name := _name(context, topic)) is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    answered = []
    for topic in topics:
        yield
        code = _refusal(forwarder, _name(context, topic), seen)
        if code is not None and everything:
            continue
        parts = []
        for part in topic.partitions:
            parts.append(_part(part, code))
            yield
        answered.append(topic._replace(partitions=parts))
    return answered


def _name(
    context: RequestContext, topic: received.OffsetFetchResponseTopic | received.OffsetFetchResponseTopics
) -> str | None:
    """Return the name of a topic in a response, by name or ID; None if it does not exist."""
    name: str | None = getattr(topic, "name", None)
    topic_id: UUID | None = getattr(topic, "topic_id", None)
    if name is not None or topic_id is None:
        return name
    found = context.broker.topics.by_id(topic_id)
    return None if found is None else found.name


def _refusal(forwarder: RequestForwarder, name: str | None, seen: Container[str]) -> ErrorCode | None:
    """Return the error of a topic whose offsets are hidden from the client; None for a visible one."""
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if name not in seen:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if forwarder.own.hides(name) or name in forwarder.own.closed else None


def _part(part: Part, refusal: ErrorCode | None) -> Part:
    if "committed_leader_epoch" in part._fields:
        part = part._replace(committed_leader_epoch=-1)
    if refusal is None:
        return part
    return part._replace(committed_offset=-1, metadata="", error_code=refusal)
