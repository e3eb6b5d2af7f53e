"""AddOffsetsToTxn: a producer of transactions V1 announces the commit of a group's offsets."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.transactional import fenced_as_known
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import promise

_FENCED_SINCE = 2


def handle(context: RequestContext, request: Any) -> Result:
    groups = context.broker.groups

    def answer(error: KafkaError | None) -> dict[str, Any]:
        code = error.code if error else ErrorCode.NONE
        code = fenced_as_known(code, context.api_version, _FENCED_SINCE)
        return {"error_code": code}

    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        return answer(KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    producer = ProducerState(request.producer_id, request.producer_epoch)
    partition = groups.offsets_partition(request.group_id)
    try:
        return promise(
            lambda done: groups.transactions.add_partitions(
                request.transactional_id, producer, [partition], done
            ),
            answer,
        )
    except KafkaError as error:
        return answer(error)
