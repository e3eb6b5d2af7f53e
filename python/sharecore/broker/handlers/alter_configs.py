"""AlterConfigs: replaces all settings of a resource."""

from __future__ import annotations

from typing import Any

from sharecore.broker.config_change import Change, Operation, alter
from sharecore.broker.context import RequestContext


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    wanted = [
        (
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, Operation.SET, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    answers = await alter(context, wanted, validate_only=request.validate_only, incremental=False)
    return {"responses": answers}
