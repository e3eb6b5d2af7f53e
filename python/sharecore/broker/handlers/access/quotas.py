"""Quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import DENIED, ErrorCode, KafkaError
from sharecore.quotas import Component, Entity, check_value, entity_of, select
from sharecore.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from sharecore.protocol import messages

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def describe_client_quotas(
    context: RequestContext, request: messages.DescribeClientQuotasRequest
) -> messages.DescribeClientQuotasResponse:
    """Return quotas of users, client ids and addresses (KIP-546).

    Needs DESCRIBE_CONFIGS on the cluster.
    """
    if not context.may(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return {"error_code": code, "error_message": None, "entries": None}
    quotas = context.broker.quotas
    components = [Component(each.entity_type, each.match_type, each.match) for each in request.components]
    try:
        found = select(quotas, components, strict=request.strict)
    except KafkaError as error:
        return {"error_code": error.code, "error_message": error.message, "entries": None}
    entries: list[messages.DescribeClientQuotasEntryData] = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "values": [{"key": key, "value": value} for key, value in quotas.of(entity).items()],
        }
        for entity in found
    ]
    return {"error_message": "", "entries": entries}


async def alter_client_quotas(
    context: RequestContext, request: messages.AlterClientQuotasRequest
) -> messages.AlterClientQuotasResponse:
    """Set and remove quotas, one entity at a time (KIP-546); needs ALTER_CONFIGS on the cluster."""
    answers: dict[Entity, messages.AlterClientQuotasResponseEntryData] = {}
    may = context.may(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
    pace = context.broker.turns.pace()
    for entry in request.entries:
        await pace.step()
        named = {part.entity_type: part.entity_name for part in entry.entity}
        entity = entity_of(named.items())
        again = entity in answers
        answer: messages.AlterClientQuotasResponseEntryData = {
            "error_message": None,
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in named.items()],
        }
        answers[entity] = answer
        try:
            if not may:
                raise KafkaError(_DENIED, DENIED[_DENIED])
            if again:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {_written(named)}")
            await context.broker.quotas.check(entity)
            changes = _checked(entity, entry.ops)
            if changes and not request.validate_only:
                await context.broker.quotas.change({entity: changes})
        except KafkaError as error:
            answer["error_code"], answer["error_message"] = error.code, error.message or None
    return {"entries": list(answers.values())}


def _checked(entity: Entity, operations: Sequence[messages.OpData]) -> dict[str, float | None]:
    changes: dict[str, float | None] = {}
    for each in operations:
        if not each.remove:
            check_value(entity, each.key, each.value)
        changes[each.key] = None if each.remove else each.value
    return changes


def _written(named: dict[str, str | None]) -> str:
    parts = (f"{kind}={'null' if name is None else name}" for kind, name in named.items())
    return f"ClientQuotaEntity(entries={{{', '.join(parts)}}})"
