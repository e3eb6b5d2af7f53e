"""CreateAcls: creates ACL entries one by one."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.handlers.describe_acls import check_may
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import (
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from sharecore.security.principal import Principal

CREATED_MAX = 10_000
"""Maximum number of entries in a request, as on Apache Kafka."""
_TOO_MANY = "Unable to perform excessively large batch operation."
_WRITTEN_AT_ONCE = 500
"""Entries persisted at once, so that other clients are served in between."""


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    try:
        check_may(context, Operation.ALTER)
    except KafkaError as error:
        refused = {"error_code": error.code, "error_message": error.message or None}
        return {"results": [refused for _ in request.creations]}
    pace = context.broker.turns.pace()
    results: list[dict[str, Any]] = []
    made: list[tuple[Acl, dict[str, Any]]] = []
    for creation in request.creations:
        result: dict[str, Any] = {"error_message": ""}
        results.append(result)
        try:
            made.append((_checked(creation), result))
        except KafkaError as error:
            _refuse(result, error)
        await pace.step()
    if len(made) > CREATED_MAX:
        too_many = KafkaError(ErrorCode.POLICY_VIOLATION, _TOO_MANY)
        for _, result in made:
            _refuse(result, too_many)
        return {"results": results}
    for at in range(0, len(made), _WRITTEN_AT_ONCE):
        some = made[at : at + _WRITTEN_AT_ONCE]
        try:
            await context.broker.acls.change(acl for acl, _ in some)
        except KafkaError as error:
            for _, result in some:
                _refuse(result, error)
    return {"results": results}


def _refuse(result: dict[str, Any], error: KafkaError) -> None:
    result.update(error_code=error.code, error_message=error.message)


def _checked(creation: Any) -> Acl:
    kind, name = creation.resource_type, creation.resource_name
    if kind == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    if kind not in set(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}:
        raise _invalid(f"Invalid resourceType {kind}")
    if creation.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {creation.resource_pattern_type}")
    if creation.operation not in set(Operation) - {Operation.UNKNOWN, Operation.ANY}:
        raise _invalid(f"Invalid operation {creation.operation}")
    if creation.permission_type not in (Permission.DENY, Permission.ALLOW):
        raise _invalid(f"Invalid permissionType {creation.permission_type}")
    try:
        Principal.parse(creation.principal)
    except ValueError as error:
        raise _invalid(f"Could not parse principal: {error}") from None
    return Acl(
        kind,
        name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
