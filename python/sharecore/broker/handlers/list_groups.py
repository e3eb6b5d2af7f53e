"""ListGroups: groups of all types, by state and type."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    groups = context.broker.groups.registry.select(request.states_filter or (), request.types_filter or ())
    return {
        "groups": [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state_name,
                "group_type": group.type.value.lower(),
            }
            for group in groups
        ]
    }
