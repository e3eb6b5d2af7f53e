"""JoinGroup: a member of a classic group joins the next generation."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.classic import JoinRequest, JoinResult
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import promise

_REBALANCE_TIMEOUT_SINCE = 1
_MEMBER_ID_REQUIRED_SINCE = 4
_NULL_PROTOCOL_SINCE = 7
_SKIP_ASSIGNMENT_SINCE = 9


def handle(context: RequestContext, request: Any) -> Result:
    version = context.api_version
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(request, version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _refused(request, version, ErrorCode.INVALID_GROUP_ID)
    joining = JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms
            if version >= _REBALANCE_TIMEOUT_SINCE
            else request.session_timeout_ms
        ),
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=[(protocol.name, protocol.metadata) for protocol in request.protocols],
        must_return=version >= _MEMBER_ID_REQUIRED_SINCE,
        can_skip_assignment=version >= _SKIP_ASSIGNMENT_SINCE,
    )

    def answer(result: JoinResult) -> dict[str, Any]:
        protocol = result.protocol or (None if version >= _NULL_PROTOCOL_SINCE else "")
        return {
            "error_code": result.error,
            "generation_id": result.generation,
            "protocol_type": result.protocol_type,
            "protocol_name": protocol,
            "leader": result.leader,
            "skip_assignment": result.skip_assignment,
            "member_id": result.member_id,
            "members": [
                {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
                for member_id, instance_id, metadata in result.members
            ],
        }

    return promise(lambda done: context.broker.groups.classic.join(joining, done), answer)


def _refused(request: Any, version: int, code: ErrorCode) -> dict[str, Any]:
    return {
        "error_code": code,
        "member_id": request.member_id,
        "protocol_name": None if version >= _NULL_PROTOCOL_SINCE else "",
    }
