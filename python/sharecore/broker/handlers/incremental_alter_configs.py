"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single keys."""

from __future__ import annotations

from typing import Any

from sharecore.broker.config_change import alter
from sharecore.broker.context import RequestContext
from sharecore.broker.key_change import Change


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    def change(config: Any) -> Change:
        return Change(config.name, config.config_operation, config.value)

    return await alter(context, request, change, incremental=True)
