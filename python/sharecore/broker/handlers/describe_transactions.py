"""DescribeTransactions: the state of transactional ids (KIP-664)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    return {"transaction_states": [_describe(context, each) for each in request.transactional_ids]}


def _describe(context: RequestContext, transactional_id: str) -> dict[str, Any]:
    if not context.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return {"transactional_id": transactional_id, "error_code": code}
    transaction = context.broker.groups.transactions.get(transactional_id)
    if not transactional_id or transaction is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return {"transactional_id": transactional_id, "error_code": code}
    topics: dict[str, list[int]] = {}
    partition: TopicPartition
    for partition in sorted(transaction.partitions):
        if context.may(Operation.DESCRIBE, ResourceType.TOPIC, partition.topic):
            topics.setdefault(partition.topic, []).append(partition.partition)
    return {
        "transactional_id": transactional_id,
        "transaction_state": transaction.state.kafka_name,
        "transaction_timeout_ms": transaction.timeout_ms,
        "transaction_start_time_ms": transaction.start_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "topics": [{"topic": name, "partitions": some} for name, some in topics.items()],
    }
