"""AlterUserScramCredentials: sets and deletes passwords that the client has salted (KIP-554)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.first_users import ITERATIONS_MAX, ITERATIONS_MIN
from sharecore.security.scram import SCRAM_MECHANISMS, Credential

_SALT_BYTES_MAX = 1024
"""Limit on the salt, which every client gets before it is authenticated."""


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    per_user: dict[str, list[Any]] = {}
    for each in (*request.deletions, *request.upsertions):
        per_user.setdefault(each.name, []).append(each)
    results = []
    may = context.may(Operation.ALTER, ResourceType.CLUSTER)
    pace = context.broker.turns.pace()
    for user, changes in per_user.items():
        await pace.step()
        result: dict[str, Any] = {"user": user, "error_message": None}
        try:
            if not may:
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            await _change(context, *changes)
        except KafkaError as error:
            result.update(error_code=error.code, error_message=error.message or None)
        results.append(result)
    return {"results": results}


async def _change(context: RequestContext, change: Any, *more: Any) -> None:
    """Change a user's credential; refuse repeated changes after validating the first one."""
    if hasattr(change, "salted_password"):
        made = _made(change)
        _refuse(more)
        await context.broker.credentials.change([made])
        return
    async with context.broker.catalogue.changing():
        named = _named(context, change)
        _refuse(more)
        await context.broker.credentials.change(deletes=[named])


def _refuse(more: tuple[Any, ...]) -> None:
    if more:
        text = "A user credential cannot be altered twice in the same request"
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)


def _mechanism(change: Any) -> str:
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    name = SCRAM_MECHANISMS.get(change.mechanism)
    if name is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return name


def _made(change: Any) -> tuple[str, str, Credential]:
    mechanism = _mechanism(change)
    if change.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty salted password")
    if max(len(change.salt), len(change.salted_password)) > _SALT_BYTES_MAX:
        text = f"The salt or the salted password is longer than {_SALT_BYTES_MAX} bytes"
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    credential = Credential.of_salted(mechanism, change.salt, change.salted_password, change.iterations)
    return change.name, mechanism, credential


def _named(context: RequestContext, change: Any) -> tuple[str, str]:
    mechanism = _mechanism(change)
    if context.broker.credentials.get(change.name, mechanism) is None:
        text = "Attempt to delete a user credential that does not exist"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return change.name, mechanism
