"""ListPartitionReassignments: with one broker nothing moves."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    return {"error_message": None, "topics": []}
