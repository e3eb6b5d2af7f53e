"""Consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.broker.handlers.described_groups import describe_each
from sharecore.broker.handlers.group_topics import HIDDEN_TOPICS, sees_topics
from sharecore.broker.requests.context import NOT_REQUESTED, RequestContext, Result
from sharecore.coordinator.consumer import (
    ConsumerGroup,
    ConsumerMember,
    Heartbeat,
    HeartbeatAnswer,
    by_topic,
)
from sharecore.coordinator.consumer.member import Partition
from sharecore.coordinator.expressions import fault_of, is_quick
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Later, Steps, promise

if TYPE_CHECKING:
    from sharecore.protocol import messages


_OWN_ID_SINCE = 1
_CONSUMER_MEMBER = 1
_NO_TOPIC = UUID(int=0)


def consumer_group_heartbeat(
    context: RequestContext, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """Join, heartbeat or leave as a member of a consumer group (KIP-848); needs READ on the group."""
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    expression = request.subscribed_topic_regex
    if expression and not is_quick((expression,)):
        return _beat_after_a_look(context, request, expression)
    if request.subscribed_topic_names:
        return context.run(_subscribe(context, request))
    return _beat(context, _read(context, request))


def _subscribe(
    context: RequestContext, request: messages.ConsumerGroupHeartbeatRequest
) -> Steps[Later[messages.ConsumerGroupHeartbeatResponse]]:
    yield from _check_topics(context, request)
    return _beat(context, _read(context, request))


async def _beat_after_a_look(
    context: RequestContext, request: messages.ConsumerGroupHeartbeatRequest, expression: str
) -> messages.ConsumerGroupHeartbeatResponse:
    """Validate a long expression in a thread before the heartbeat."""
    await context.finish(_check_topics(context, request))
    heartbeat = _read(context, request)
    fault = await context.broker.long_work.run(context.connection.owner, partial(fault_of, expression))
    return await _beat(context, heartbeat._replace(expression_fault=fault))


def _check_topics(context: RequestContext, request: messages.ConsumerGroupHeartbeatRequest) -> Steps[None]:
    names = request.subscribed_topic_names or ()
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    if not all(name in seen for name in names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _read(context: RequestContext, request: messages.ConsumerGroupHeartbeatRequest) -> Heartbeat:
    if not context.broker.features.has_consumer_groups:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if context.api_version >= _OWN_ID_SINCE and not request.member_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    owned = request.topic_partitions
    return Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_names=request.subscribed_topic_names,
        subscribed_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=(
            None
            if owned is None
            else frozenset(
                (each.topic_id or _NO_TOPIC, partition) for each in owned for partition in each.partitions
            )
        ),
        lists_topics=bool(owned),
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        may_describe=lambda topic: context.may(Operation.DESCRIBE, ResourceType.TOPIC, topic, quiet=True),
    )


def _beat(context: RequestContext, heartbeat: Heartbeat) -> Later[messages.ConsumerGroupHeartbeatResponse]:
    def answer(result: HeartbeatAnswer | KafkaError) -> messages.ConsumerGroupHeartbeatResponse:
        if isinstance(result, KafkaError):
            return {"error_code": result.code, "error_message": result.message or None}
        assignment: messages.ConsumerGroupHeartbeatAssignment | None = None
        if result.assigned is not None:
            assignment = {
                "topic_partitions": [
                    {"topic_id": topic_id, "partitions": partitions}
                    for topic_id, partitions in by_topic(result.assigned).items()
                ]
            }
        return {
            "member_id": result.member_id,
            "member_epoch": result.epoch,
            "heartbeat_interval_ms": result.heartbeat_ms,
            "assignment": assignment,
        }

    return promise(lambda done: context.broker.groups.consumer.heartbeat(heartbeat, done), answer)


def consumer_group_describe(
    context: RequestContext, request: messages.ConsumerGroupDescribeRequest
) -> Result[messages.ConsumerGroupDescribeResponse]:
    """Return state, members and assignments of consumer groups (KIP-848)."""
    return context.run(_describe_all(context, request))


def _describe_all(
    context: RequestContext, request: messages.ConsumerGroupDescribeRequest
) -> Steps[messages.ConsumerGroupDescribeResponse]:
    groups = yield from describe_each(context, request.group_ids, partial(_describe, context, request))
    return {"groups": groups}


def _describe(
    context: RequestContext,
    request: messages.ConsumerGroupDescribeRequest,
    group_id: str,
    seen: Container[str],
) -> messages.ConsumerGroupDescribeDescribedGroup:
    groups = context.broker.groups
    if group_id not in seen:
        return {"group_id": group_id, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED}
    try:
        if not context.broker.features.has_consumer_groups:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = groups.registry.find(group_id, ConsumerGroup)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    except KafkaError as error:
        return {"group_id": group_id, "error_code": error.code, "error_message": error.message or None}
    members = [_member(context, group, member) for member in group.members.values()]
    assignments = (each for member in members for each in (member["assignment"], member["target_assignment"]))
    if not sees_topics(context, assignments):
        return {
            "group_id": group_id,
            "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "error_message": HIDDEN_TOPICS,
        }
    return {
        "group_id": group_id,
        "group_state": group.state_name,
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": group.assignor(context.broker.config.group_consumer_assignors[0]),
        "members": members,
        "authorized_operations": (
            context.operations(ResourceType.GROUP, group_id)
            if request.include_authorized_operations
            else NOT_REQUESTED
        ),
    }


def _member(
    context: RequestContext, group: ConsumerGroup, member: ConsumerMember
) -> messages.ConsumerGroupDescribeMember:
    target = group.target.get(member.member_id, {})
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": sorted(member.subscribed_names),
        "subscribed_topic_regex": member.subscribed_regex or "",
        "assignment": _assignment(context, member.held),
        "target_assignment": _assignment(
            context, [(topic, partition) for topic, some in target.items() for partition in some]
        ),
        "member_type": _CONSUMER_MEMBER,
    }


def _assignment(
    context: RequestContext, partitions: Iterable[Partition]
) -> messages.ConsumerGroupDescribeAssignment:
    topics = context.broker.topics
    return {
        "topic_partitions": [
            {"topic_id": topic_id, "topic_name": topic.name, "partitions": some}
            for topic_id, some in by_topic(list(partitions)).items()
            if (topic := topics.by_id(topic_id)) is not None
        ]
    }
