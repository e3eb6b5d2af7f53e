"""DeleteAcls: deletes and returns the entries matching filters."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.handlers.describe_acls import check_may, filter_of
from sharecore.errors import KafkaError
from sharecore.security.acl import Acl, Operation


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    pace = context.broker.turns.pace()
    try:
        check_may(context, Operation.ALTER)
        found = await context.broker.acls.delete(map(filter_of, request.filters), pace.step)
    except KafkaError as error:
        refused: dict[str, Any] = {
            "error_code": error.code,
            "error_message": error.message or None,
            "matching_acls": [],
        }
        return {"filter_results": [refused for _ in request.filters]}
    results = []
    for some in found:
        matching = []
        for acl in some:
            matching.append(_entry(acl))
            await pace.step()
        results.append({"error_message": None, "matching_acls": matching})
        await pace.step()
    return {"filter_results": results}


def _entry(acl: Acl) -> dict[str, Any]:
    return {
        "error_message": None,
        "resource_type": acl.resource_type,
        "resource_name": acl.name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }
