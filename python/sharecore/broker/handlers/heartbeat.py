"""Heartbeat: renews the session of a classic-group member."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    context.broker.groups.classic.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return {}
