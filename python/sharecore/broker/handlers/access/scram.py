"""Passwords of users (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from sharecore.broker.requests.context import RequestContext, Result
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.first_users import ITERATIONS_MAX, ITERATIONS_MIN
from sharecore.security.scram import SCRAM_MECHANISMS, Credential
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages

    _Changes: TypeAlias = tuple[
        list[messages.ScramCredentialDeletion], list[messages.ScramCredentialUpsertion]
    ]
    """Changes of one user."""

_NUMBERS = {name: number for number, name in SCRAM_MECHANISMS.items()}
_SALT_BYTES_MAX = 1024
"""Limit on the salt, which every client gets before it is authenticated."""


def describe_user_scram_credentials(
    context: RequestContext, request: messages.DescribeUserScramCredentialsRequest
) -> Result[messages.DescribeUserScramCredentialsResponse]:
    """Return the users that have a password, without the password (KIP-554).

    Needs DESCRIBE on the cluster.
    """
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return {
            "error_code": code,
            "error_message": None,
            "results": [{"user": "", "error_code": code, "error_message": None} for _ in request.users or ()],
        }
    return context.run(_describe_all(context, request))


def _describe_all(
    context: RequestContext, request: messages.DescribeUserScramCredentialsRequest
) -> Steps[messages.DescribeUserScramCredentialsResponse]:
    users = context.broker.credentials.users()
    asked = Counter(user.name for user in request.users or ())
    results: list[messages.DescribeUserScramCredentialsResult] = []
    for name in asked or users:
        results.append(_describe(name, users.get(name), asked[name]))
        yield
    return {"error_message": "", "results": results}


def _describe(
    name: str, mechanisms: dict[str, int] | None, times: int
) -> messages.DescribeUserScramCredentialsResult:
    answer: messages.DescribeUserScramCredentialsResult = {
        "user": name,
        "error_message": "",
        "credential_infos": [],
    }
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


async def alter_user_scram_credentials(
    context: RequestContext, request: messages.AlterUserScramCredentialsRequest
) -> messages.AlterUserScramCredentialsResponse:
    """Set and delete passwords that the client has salted (KIP-554); needs ALTER on the cluster."""
    per_user: dict[str, _Changes] = {}
    for deletion in request.deletions:
        per_user.setdefault(deletion.name, ([], []))[0].append(deletion)
    for upsertion in request.upsertions:
        per_user.setdefault(upsertion.name, ([], []))[1].append(upsertion)
    results: list[messages.AlterUserScramCredentialsResult] = []
    may = context.may(Operation.ALTER, ResourceType.CLUSTER)
    pace = context.broker.turns.pace()
    for user, changes in per_user.items():
        await pace.step()
        result: messages.AlterUserScramCredentialsResult = {"user": user, "error_message": None}
        try:
            if not may:
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            await _change(context, changes)
        except KafkaError as error:
            result["error_code"], result["error_message"] = error.code, error.message or None
        results.append(result)
    return {"results": results}


async def _change(context: RequestContext, changes: _Changes) -> None:
    """Change a user's credential; refuse repeated changes after validating the first one."""
    deletions, upsertions = changes
    if not deletions:
        made = _made(upsertions[0])
        _refuse_repeated(changes)
        await context.broker.credentials.change([made])
        return
    async with context.broker.catalog.changing():
        named = _named(context, deletions[0])
        _refuse_repeated(changes)
        await context.broker.credentials.change(deletes=[named])


def _refuse_repeated(changes: _Changes) -> None:
    deletions, upsertions = changes
    if len(deletions) + len(upsertions) > 1:
        text = "A user credential cannot be altered twice in the same request"
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)


def _mechanism(change: messages.ScramCredentialDeletion | messages.ScramCredentialUpsertion) -> str:
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    name = SCRAM_MECHANISMS.get(change.mechanism)
    if name is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return name


def _made(change: messages.ScramCredentialUpsertion) -> tuple[str, str, Credential]:
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


def _named(context: RequestContext, change: messages.ScramCredentialDeletion) -> tuple[str, str]:
    mechanism = _mechanism(change)
    if context.broker.credentials.get(change.name, mechanism) is None:
        text = "Attempt to delete a user credential that does not exist"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return change.name, mechanism
