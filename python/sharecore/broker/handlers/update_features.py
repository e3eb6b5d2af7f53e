"""UpdateFeatures: sets feature levels, all or none (KIP-584)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.features import FeatureUpdate
from sharecore.security.acl import Operation, ResourceType

_NO_ERROR = "NONE"


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    # if a feature repeats, the last entry wins
    updates = {
        each.feature: FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)
        for each in request.feature_updates
    }
    await context.broker.features.update(updates.values(), validate_only=request.validate_only)
    return {
        "error_message": None,
        "results": [
            {"feature": each.feature, "error_message": _NO_ERROR} for each in request.feature_updates
        ],
    }
