"""LeaveGroup: members leave a classic group, by themselves or removed by an operator."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.classic import Leaving
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import promise

_MEMBERS_SINCE = 3


def handle(context: RequestContext, request: Any) -> Result:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    groups = context.broker.groups.classic
    if context.api_version < _MEMBERS_SINCE:
        (code,) = groups.leave(request.group_id, [Leaving(request.member_id)])
        left: dict[str, Any] = {"error_code": code}
    else:
        leaving = [
            Leaving(member.member_id, member.group_instance_id, member.reason or "it left")
            for member in request.members
        ]
        codes = groups.leave(request.group_id, leaving)
        members = [
            {"member_id": member.member_id, "group_instance_id": member.instance_id, "error_code": code}
            for member, code in zip(leaving, codes, strict=True)
        ]
        left = {"members": members}

    def answer(error: KafkaError | None) -> dict[str, Any]:
        return left if error is None else {"error_code": error.code}

    return promise(lambda done: groups.when_left(request.group_id, done), answer)
