"""DeleteAcls: deletes the entries that filters select, and names them."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.handlers.describe_acls import check_may, filter_of
from sharecore.errors import KafkaError
from sharecore.security.acl import Acl, Operation


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    try:
        check_may(context, Operation.ALTER)
    except KafkaError as error:
        refused: dict[str, Any] = {
            "error_code": error.code,
            "error_message": error.message or None,
            "matching_acls": [],
        }
        return {"filter_results": [refused for _ in request.filters]}
    pace = context.broker.turns.pace()
    found = await context.broker.acls.delete(map(filter_of, request.filters), pace.step)
    return {
        "filter_results": [
            {"error_message": None, "matching_acls": [_entry(acl) for acl in some]} for some in found
        ]
    }


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
