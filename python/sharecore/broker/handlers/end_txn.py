"""EndTxn: commits or aborts a transaction."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.transactional import fenced_as_known
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import promise

_FENCED_SINCE = 2
_RISING_EPOCHS_SINCE = 5


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    broker = context.broker
    version = context.api_version
    await broker.producer_ids.ensure()

    def answer(result: ProducerState | KafkaError) -> dict[str, Any]:
        if not isinstance(result, KafkaError):
            return {"producer_id": result.id, "producer_epoch": result.epoch}
        code = fenced_as_known(result.code, version, _FENCED_SINCE)
        return {"error_code": code}

    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    producer = ProducerState(request.producer_id, request.producer_epoch)
    try:
        return await promise(
            lambda done: broker.groups.transactions.end(
                request.transactional_id,
                producer,
                commit=request.committed,
                version=2 if version >= _RISING_EPOCHS_SINCE else 0,
                done=done,
            ),
            answer,
        )
    except KafkaError as error:
        return answer(error)
