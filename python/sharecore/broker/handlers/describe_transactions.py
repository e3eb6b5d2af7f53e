"""DescribeTransactions: the state of transactional ids (KIP-664)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    names = request.transactional_ids
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names)
    described: dict[str, dict[str, Any]] = {}
    for name in names:
        # a repeated id takes no more memory
        if name not in described:
            described[name] = yield from _describe(context, name, seen)
        yield
    return {"transaction_states": [described[name] for name in names]}


def _describe(context: RequestContext, transactional_id: str, seen: Container[str]) -> Steps[dict[str, Any]]:
    if transactional_id not in seen:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return {"transactional_id": transactional_id, "error_code": code}
    transaction = context.broker.groups.transactions.get(transactional_id)
    if not transactional_id or transaction is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return {"transactional_id": transactional_id, "error_code": code}
    partitions: list[TopicPartition] = sorted(transaction.partitions)
    names = (partition.topic for partition in partitions)
    topics_seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        if partition.topic in topics_seen:
            topics.setdefault(partition.topic, []).append(partition.partition)
        yield
    return {
        "transactional_id": transactional_id,
        "transaction_state": transaction.state.kafka_name,
        "transaction_timeout_ms": transaction.timeout_ms,
        "transaction_start_time_ms": transaction.start_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "topics": [{"topic": name, "partitions": some} for name, some in topics.items()],
    }
