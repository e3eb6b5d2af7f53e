"""Members of share groups, and descriptions of the groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING

from sharecore.broker.handlers.described_groups import describe_each
from sharecore.broker.handlers.group_topics import HIDDEN_TOPICS, sees_topics
from sharecore.broker.requests.context import NOT_REQUESTED, RequestContext, Result
from sharecore.coordinator.share.coordinator import Heartbeat, HeartbeatAnswer
from sharecore.coordinator.share.group import Assignment, Member
from sharecore.coordinator.topics import TopicView
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Begun, Gather, Steps, reply

if TYPE_CHECKING:
    from sharecore.protocol import messages

_ASSIGNOR = "simple"


def share_group_heartbeat(
    context: RequestContext, request: messages.ShareGroupHeartbeatRequest
) -> Result[messages.ShareGroupHeartbeatResponse]:
    """Join, heartbeat or leave as a member of a share group (KIP-932); needs READ on the group."""
    context.broker.features.check_share_groups()
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if request.subscribed_topic_names:
        return context.run(_subscribe(context, request))
    return _heartbeat(context, request)


def _subscribe(
    context: RequestContext, request: messages.ShareGroupHeartbeatRequest
) -> Steps[Begun[messages.ShareGroupHeartbeatResponse]]:
    names = request.subscribed_topic_names or ()
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    if not all(name in seen for name in names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _heartbeat(context, request)


def _heartbeat(
    context: RequestContext, request: messages.ShareGroupHeartbeatRequest
) -> Begun[messages.ShareGroupHeartbeatResponse]:
    heartbeat = Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        request.subscribed_topic_names,
        context.client_id or "",
        f"/{context.connection.peer_host}",
    )
    gather: Gather[None] = Gather()
    gather.run(None, context.broker.share.groups.heartbeat, heartbeat)
    return reply(gather, lambda: _answer(gather.outcomes[None]))


def _answer(answer: HeartbeatAnswer | KafkaError) -> messages.ShareGroupHeartbeatResponse:
    if isinstance(answer, KafkaError):
        raise answer
    assignment = answer.assignment
    return {
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval_ms": answer.heartbeat_ms,
        "assignment": None
        if assignment is None
        else {
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": partitions}
                for topic_id, partitions in assignment.items()
            ]
        },
    }


def share_group_describe(
    context: RequestContext, request: messages.ShareGroupDescribeRequest
) -> Result[messages.ShareGroupDescribeResponse]:
    """Return state, epochs and members of share groups (KIP-932)."""
    return context.run(_describe_all(context, request))


def _describe_all(
    context: RequestContext, request: messages.ShareGroupDescribeRequest
) -> Steps[messages.ShareGroupDescribeResponse]:
    groups = yield from describe_each(context, request.group_ids, partial(_describe, context, request))
    return {"groups": groups}


def _describe(
    context: RequestContext, request: messages.ShareGroupDescribeRequest, group_id: str, seen: Container[str]
) -> messages.ShareGroupDescribeDescribedGroup:
    share = context.broker.share
    if group_id not in seen:
        return {"group_id": group_id, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED}
    if not context.broker.features.has_share_groups:
        return {"group_id": group_id, "error_code": ErrorCode.UNSUPPORTED_VERSION}
    if not group_id:
        return {"group_id": group_id, "error_code": ErrorCode.INVALID_GROUP_ID}
    try:
        group = share.groups.find(group_id)
    except KafkaError as error:
        return {"group_id": group_id, "error_code": error.code, "error_message": error.message}
    if group is None:
        return {
            "group_id": group_id,
            "error_code": ErrorCode.GROUP_ID_NOT_FOUND,
            "error_message": f"Group {group_id} not found.",
        }
    members = [_member(member, share.topics) for member in group.members.values()]
    if not sees_topics(context, (member["assignment"] for member in members)):
        return {
            "group_id": group_id,
            "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "error_message": HIDDEN_TOPICS,
        }
    asked = request.include_authorized_operations
    allowed = context.operations(ResourceType.GROUP, group_id) if asked else NOT_REQUESTED
    return {
        "group_id": group.group_id,
        "group_state": group.state_name,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": _ASSIGNOR,
        "members": members,
        "authorized_operations": allowed,
    }


def _member(member: Member, topics: TopicView) -> messages.ShareGroupDescribeMember:
    return {
        "member_id": member.member_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.subscribed,
        "assignment": {"topic_partitions": _assignment(member.assigned, topics)},
    }


def _assignment(assigned: Assignment, topics: TopicView) -> list[messages.ShareGroupDescribeTopicPartitions]:
    found = ((topics.find_id(topic_id), partitions) for topic_id, partitions in assigned.items())
    return [
        {"topic_id": topic.topic_id, "topic_name": topic.name, "partitions": partitions}
        for topic, partitions in found
        if topic is not None
    ]
