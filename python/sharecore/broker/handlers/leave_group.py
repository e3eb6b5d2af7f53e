"""LeaveGroup: members leave a classic group, by themselves or removed by an operator."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.coordinator.classic import Leaving
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType

_MEMBERS_SINCE = 3


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    groups = context.broker.groups.classic
    if context.api_version < _MEMBERS_SINCE:
        (code,) = groups.leave(request.group_id, [Leaving(request.member_id)])
        return {"error_code": code}
    leaving = [
        Leaving(member.member_id, member.group_instance_id, member.reason or "it left")
        for member in request.members
    ]
    codes = groups.leave(request.group_id, leaving)
    return {
        "members": [
            {"member_id": member.member_id, "group_instance_id": member.instance_id, "error_code": code}
            for member, code in zip(leaving, codes, strict=True)
        ]
    }
