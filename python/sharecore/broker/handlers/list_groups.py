"""ListGroups: groups of all types, by state and type."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_list(context, request))


def _list(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    groups = context.broker.groups.registry.select(request.states_filter or (), request.types_filter or ())
    sees_all = context.may(Operation.DESCRIBE, ResourceType.CLUSTER, quiet=True)
    names = () if sees_all else (group.group_id for group in groups)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, names, quiet=True)
    listed = []
    for group in groups:
        if sees_all or group.group_id in seen:
            listed.append(
                {
                    "group_id": group.group_id,
                    "protocol_type": group.protocol_type,
                    "group_state": group.state_name,
                    "group_type": group.type.value.lower(),
                }
            )
        yield
    return {"groups": listed}
