"""DescribeAcls: entries matching a filter, by resource."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import AclFilter, Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    check_may(context, Operation.DESCRIBE, "No Authorizer is configured on the broker")
    resources: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for acl in context.broker.acls.select(filter_of(request)):
        entry = {
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permission_type": acl.permission,
        }
        resources.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(entry)
    return {
        "error_message": "",
        "resources": [
            {"resource_type": kind, "resource_name": name, "pattern_type": pattern, "acls": acls}
            for (kind, name, pattern), acls in resources.items()
        ],
    }


def check_may(
    context: RequestContext, operation: Operation, without_any: str = "No Authorizer is configured."
) -> None:
    """Raise KafkaError unless the client is authorized and an authorizer is configured."""
    context.require(operation, ResourceType.CLUSTER)
    if context.broker.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, without_any)


def filter_of(asked: Any) -> AclFilter:
    """Return the filter of a request."""
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
