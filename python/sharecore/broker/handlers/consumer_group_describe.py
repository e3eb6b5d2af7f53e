"""ConsumerGroupDescribe: consumer groups with members, current and target assignments (KIP-848)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from sharecore.broker.context import NOT_REQUESTED, RequestContext, Result
from sharecore.broker.group_topics import HIDDEN_TOPICS, sees_topics
from sharecore.coordinator.consumer import ConsumerGroup, ConsumerMember, by_topic
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_CONSUMER_MEMBER = 1


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, request.group_ids)
    described: dict[str, dict[str, Any]] = {}
    for group_id in request.group_ids:
        # a repeated group takes no more memory
        if group_id not in described:
            described[group_id] = _describe(context, request, group_id, seen)
        yield
    return {"groups": [described[group_id] for group_id in request.group_ids]}


def _describe(context: RequestContext, request: Any, group_id: str, seen: Container[str]) -> dict[str, Any]:
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
    if not sees_topics(context, members):
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


def _member(context: RequestContext, group: ConsumerGroup, member: ConsumerMember) -> dict[str, Any]:
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


def _assignment(context: RequestContext, partitions: Iterable[Any]) -> dict[str, Any]:
    topics = context.broker.topics
    return {
        "topic_partitions": [
            {"topic_id": topic_id, "topic_name": topic.name, "partitions": some}
            for topic_id, some in by_topic(list(partitions)).items()
            if (topic := topics.by_id(topic_id)) is not None
        ]
    }
