"""DescribeUserScramCredentials: users with a password, without the password (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.scram import SCRAM_MECHANISMS
from sharecore.waiting import Steps

_NUMBERS = {name: number for number, name in SCRAM_MECHANISMS.items()}


def handle(context: RequestContext, request: Any) -> Result:
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        refused = {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "error_message": None}
        return refused | {"results": [{"user": "", **refused} for _ in request.users or ()]}
    return context.run(_describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    users = context.broker.credentials.users()
    asked = Counter(user.name for user in request.users or ())
    results = []
    for name in asked or users:
        results.append(_describe(name, users.get(name), asked[name]))
        yield
    return {"error_message": "", "results": results}


def _describe(name: str, mechanisms: dict[str, int] | None, times: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"user": name, "error_message": "", "credential_infos": []}
    if times > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return answer | {"error_code": ErrorCode.DUPLICATE_RESOURCE, "error_message": text}
    if mechanisms is None:
        text = f"Attempt to describe a user credential that does not exist: {name}"
        return answer | {"error_code": ErrorCode.RESOURCE_NOT_FOUND, "error_message": text}
    answer["credential_infos"] = [
        {"mechanism": _NUMBERS[mechanism], "iterations": iterations}
        for mechanism, iterations in mechanisms.items()
    ]
    return answer
