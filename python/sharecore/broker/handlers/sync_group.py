"""SyncGroup: a member of a classic group gets its assignment; the leader provides all of them."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.classic import SyncRequest, SyncResult
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import promise

_PROTOCOL_REQUIRED_SINCE = 5


def handle(context: RequestContext, request: Any) -> Result:
    if context.api_version >= _PROTOCOL_REQUIRED_SINCE and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        return {"error_code": ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        return {"error_code": ErrorCode.INVALID_GROUP_ID}
    syncing = SyncRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={each.member_id: each.assignment for each in request.assignments},
    )

    def answer(result: SyncResult) -> dict[str, Any]:
        return {
            "error_code": result.error,
            "protocol_type": result.protocol_type,
            "protocol_name": result.protocol,
            "assignment": result.assignment,
        }

    return promise(lambda done: context.broker.groups.classic.sync(syncing, done), answer)
