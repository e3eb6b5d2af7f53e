"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single keys."""

from __future__ import annotations

from typing import Any

from sharecore.broker.config_change import Change, alter
from sharecore.broker.context import RequestContext


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    wanted = [
        (
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    return {"responses": await alter(context, wanted, validate_only=request.validate_only)}
