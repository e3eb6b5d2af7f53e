"""InitProducerId: ids of idempotent producers, and registration of transactional ones."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.transactional import fenced_as_known
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import promise

_FENCED_SINCE = 4


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    broker = context.broker
    version = context.api_version

    def answer(result: ProducerState | KafkaError) -> dict[str, Any]:
        if not isinstance(result, KafkaError):
            return {"producer_id": result.id, "producer_epoch": result.epoch}
        code = fenced_as_known(result.code, version, _FENCED_SINCE)
        return {"error_code": code, "producer_id": -1, "producer_epoch": -1}

    if (code := refusal(context, request)) is not None:
        return answer(KafkaError(code))
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return answer(KafkaError(ErrorCode.INVALID_REQUEST))
    expected = None
    if request.producer_id != -1:
        expected = ProducerState(request.producer_id, request.producer_epoch)
    try:
        await broker.producer_ids.ensure()
        if request.transactional_id is None:
            return answer(ProducerState(broker.producer_ids.take(), 0))
        return await promise(
            lambda done: broker.groups.transactions.initialize(
                request.transactional_id, request.transaction_timeout_ms, expected, done
            ),
            answer,
        )
    except KafkaError as error:
        return answer(error)


def refusal(context: RequestContext, request: Any) -> ErrorCode | None:
    """Return the error for an unauthorized producer; None if it is authorized."""
    if request.transactional_id is not None:
        may = context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return None if may else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    # a client with write access to any topic may be idempotent (KIP-679)
    may = context.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or context.may_some(
        Operation.WRITE, ResourceType.TOPIC
    )
    return None if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
