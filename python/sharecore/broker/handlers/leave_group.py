"""LeaveGroup: removes members of a classic group; an operator may also remove consumer-group members."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.classic import Leaving
from sharecore.coordinator.consumer.group import ConsumerGroup
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Done, promise

_MEMBERS_SINCE = 3


def handle(context: RequestContext, request: Any) -> Result:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    groups = context.broker.groups
    if context.api_version < _MEMBERS_SINCE:
        leaving = [Leaving(request.member_id)]
    else:
        leaving = [
            Leaving(member.member_id, member.group_instance_id, member.reason or "it left")
            for member in request.members
        ]
    codes: list[ErrorCode] = []

    def leave(done: Done) -> None:
        group = groups.registry.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            named = [(each.member_id, each.instance_id) for each in leaving]
            codes.extend(groups.consumer.leave(group, named, done))
        else:
            codes.extend(groups.classic.leave(request.group_id, leaving))
            groups.classic.when_left(request.group_id, done)

    def answer(error: KafkaError | None) -> dict[str, Any]:
        if error is not None:
            return {"error_code": error.code}
        if context.api_version < _MEMBERS_SINCE:
            return {"error_code": codes[0]}
        members = [
            {"member_id": member.member_id, "group_instance_id": member.instance_id, "error_code": code}
            for member, code in zip(leaving, codes, strict=True)
        ]
        return {"members": members}

    return promise(leave, answer)
