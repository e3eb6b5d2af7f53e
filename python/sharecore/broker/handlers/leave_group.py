"""LeaveGroup: members leave a classic group, by themselves or removed by an operator."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType

_MEMBERS_SINCE = 3


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    groups = context.broker.groups.classic
    if context.api_version < _MEMBERS_SINCE:
        groups.leave(request.group_id, request.member_id, None)
        return {}
    answers = []
    for member in request.members:
        answer = {"member_id": member.member_id, "group_instance_id": member.group_instance_id}
        answers.append(answer)
        try:
            groups.leave(
                request.group_id, member.member_id, member.group_instance_id, member.reason or "it left"
            )
        except KafkaError as error:
            answer["error_code"] = error.code
    return {"members": answers}
