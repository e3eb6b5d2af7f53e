"""DescribeClientQuotas: quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.quotas import Component, select
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if not context.may(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return {"error_code": code, "error_message": None, "entries": None}
    quotas = context.broker.quotas
    components = [Component(each.entity_type, each.match_type, each.match) for each in request.components]
    try:
        found = select(quotas, components, strict=request.strict)
    except KafkaError as error:
        return {"error_code": error.code, "error_message": error.message, "entries": None}
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "values": [{"key": key, "value": value} for key, value in quotas.of(entity).items()],
        }
        for entity in found
    ]
    return {"error_message": "", "entries": entries}
