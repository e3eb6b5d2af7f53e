"""ListPartitionReassignments: with one broker nothing moves."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    return {"error_message": None, "topics": []}
