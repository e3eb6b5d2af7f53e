"""AlterConfigs: replaces all settings of a resource."""

from __future__ import annotations

from typing import Any

from sharecore.broker.config_change import alter
from sharecore.broker.context import RequestContext
from sharecore.broker.key_change import Change, Operation


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    def change(config: Any) -> Change:
        return Change(config.name, Operation.SET, config.value)

    return await alter(context, request, change, incremental=False)
