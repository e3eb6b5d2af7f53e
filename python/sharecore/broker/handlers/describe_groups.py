"""DescribeGroups: classic groups with their members."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sharecore.broker.context import NOT_REQUESTED, RequestContext, Result
from sharecore.coordinator.classic import ClassicGroup, ClassicState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_NOT_FOUND_SINCE = 6


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, request.groups)
    described: dict[str, dict[str, Any]] = {}
    for group_id in request.groups:
        # a repeated group takes no more memory
        if group_id not in described:
            described[group_id] = _describe(context, request, group_id, seen)
        yield
    return {"groups": [described[group_id] for group_id in request.groups]}


def _describe(context: RequestContext, request: Any, group_id: str, seen: Container[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"group_id": group_id}
    asked = getattr(request, "include_authorized_operations", False)
    if group_id not in seen:
        refused = {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED, "error_message": None}
        return answer | refused | {"authorized_operations": NOT_REQUESTED}
    allowed = context.operations(ResourceType.GROUP, group_id) if asked else NOT_REQUESTED
    try:
        group = context.broker.groups.registry.find(group_id, ClassicGroup)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    except KafkaError as error:
        answer["group_state"] = ClassicState.DEAD.value
        if context.api_version >= _NOT_FOUND_SINCE:
            return answer | {"error_code": error.code, "error_message": error.message}
        return answer | {"authorized_operations": allowed}
    stable = group.state is ClassicState.STABLE
    return answer | {
        "authorized_operations": allowed,
        "group_state": group.state_name,
        "protocol_type": group.protocol_type,
        "protocol_data": (group.protocol or "") if stable else "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata(group.protocol) if stable else b"",
                "member_assignment": member.assignment,
            }
            for member in group.members.values()
        ],
    }
