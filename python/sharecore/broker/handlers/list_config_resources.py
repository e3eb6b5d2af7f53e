"""ListConfigResources: resources with configurations."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation
from sharecore.security.acl import ResourceType as Protected
from sharecore.storage import ResourceType

_TYPES_SINCE = 1


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    context.require(Operation.DESCRIBE_CONFIGS, Protected.CLUSTER)
    # version 0 requests only client-metrics subscriptions
    wanted = (
        set(request.resource_types) if context.api_version >= _TYPES_SINCE else {ResourceType.CLIENT_METRICS}
    )
    if not wanted <= set(ResourceType):
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "config_resources": []}
    broker = context.broker
    names = {
        ResourceType.GROUP: broker.configs.names(ResourceType.GROUP),
        ResourceType.CLIENT_METRICS: broker.configs.names(ResourceType.CLIENT_METRICS),
        ResourceType.BROKER: [str(broker.identity.node_id)],
        ResourceType.TOPIC: broker.topics.names(),
    }
    return {
        "config_resources": [
            {"resource_name": name, "resource_type": kind}
            for kind in names
            if not wanted or kind in wanted
            for name in sorted(names[kind])
        ]
    }
