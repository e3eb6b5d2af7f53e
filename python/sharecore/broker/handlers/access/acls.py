"""Access control lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from sharecore.security.principal import Principal

if TYPE_CHECKING:
    from sharecore.protocol import messages

CREATED_MAX = 10_000
"""Maximum number of entries in a request, as on Apache Kafka."""
_TOO_MANY = "Unable to perform excessively large batch operation."
_WRITTEN_AT_ONCE = 500
"""Entries persisted at once, so that other clients are served in between."""


def describe_acls(
    context: RequestContext, request: messages.DescribeAclsRequest
) -> messages.DescribeAclsResponse:
    """Return the ACL entries that match a filter, by resource.

    Raise KafkaError without DESCRIBE on the cluster.
    """
    check_may(context, Operation.DESCRIBE, "No Authorizer is configured on the broker")
    resources: dict[tuple[int, str, int], list[messages.AclDescription]] = {}
    for acl in context.broker.acls.select(filter_of(request)):
        entry: messages.AclDescription = {
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


def filter_of(asked: messages.DescribeAclsRequest | messages.DeleteAclsFilter) -> AclFilter:
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


async def create_acls(
    context: RequestContext, request: messages.CreateAclsRequest
) -> messages.CreateAclsResponse:
    """Create ACL entries, each with a result of its own; all are refused without ALTER on the cluster."""
    try:
        check_may(context, Operation.ALTER)
    except KafkaError as error:
        refused: messages.AclCreationResult = {
            "error_code": error.code,
            "error_message": error.message or None,
        }
        return {"results": [refused for _ in request.creations]}
    pace = context.broker.turns.pace()
    results: list[messages.AclCreationResult] = []
    made: list[tuple[Acl, messages.AclCreationResult]] = []
    for creation in request.creations:
        result: messages.AclCreationResult = {"error_message": ""}
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


def _refuse(result: messages.AclCreationResult, error: KafkaError) -> None:
    result["error_code"], result["error_message"] = error.code, error.message


def _checked(creation: messages.AclCreation) -> Acl:
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


async def delete_acls(
    context: RequestContext, request: messages.DeleteAclsRequest
) -> messages.DeleteAclsResponse:
    """Delete the ACL entries that match filters and return them.

    Refuse all without ALTER on the cluster.
    """
    pace = context.broker.turns.pace()
    try:
        check_may(context, Operation.ALTER)
        found = await context.broker.acls.delete(map(filter_of, request.filters), pace.step)
    except KafkaError as error:
        refused: messages.DeleteAclsFilterResult = {
            "error_code": error.code,
            "error_message": error.message or None,
            "matching_acls": [],
        }
        return {"filter_results": [refused for _ in request.filters]}
    results: list[messages.DeleteAclsFilterResult] = []
    for some in found:
        matching: list[messages.DeleteAclsMatchingAcl] = []
        for acl in some:
            matching.append(_entry(acl))
            await pace.step()
        results.append({"error_message": None, "matching_acls": matching})
        await pace.step()
    return {"filter_results": results}


def _entry(acl: Acl) -> messages.DeleteAclsMatchingAcl:
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
