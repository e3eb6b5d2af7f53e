"""ListGroups: groups of all types, by state and type."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    groups = context.broker.groups.registry.select(request.states_filter or (), request.types_filter or ())
    sees_all = context.may(Operation.DESCRIBE, ResourceType.CLUSTER, quiet=True)
    return {
        "groups": [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state_name,
                "group_type": group.type.value.lower(),
            }
            for group in groups
            if sees_all or context.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, quiet=True)
        ]
    }
