"""DescribeProducers: active producers of partitions, and their open transactions (KIP-664)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.topic_rules import check_name, is_legal_name
from sharecore.errors import DENIED, NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_describe_all(context, request))


def _describe_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    names = (topic.name for topic in request.topics if is_legal_name(topic.name))
    readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, names)
    topics = []
    for topic in request.topics:
        partitions = yield from _partitions(context, topic, readable)
        topics.append({"name": topic.name, "partitions": partitions})
        yield
    return {"topics": topics}


def _partitions(context: RequestContext, topic: Any, readable: Container[str]) -> Steps[list[dict[str, Any]]]:
    try:
        check_name(topic.name)
        if topic.name not in readable:
            raise KafkaError(_DENIED, DENIED[_DENIED])
        if context.broker.topics.get(topic.name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
    except KafkaError as error:
        refused = {"error_code": error.code, "error_message": error.message}
        return [{"partition_index": index, **refused} for index in topic.partition_indexes]
    described: dict[int, dict[str, Any]] = {}
    for index in topic.partition_indexes:
        # a repeated partition takes no more memory
        if index not in described:
            described[index] = _describe(context, topic.name, index)
        yield
    return [described[index] for index in topic.partition_indexes]


def _describe(context: RequestContext, name: str, index: int) -> dict[str, Any]:
    log = context.broker.topics.log(name, index)
    if log is None:
        return {"partition_index": index, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    return {
        "partition_index": index,
        "active_producers": [
            {
                "producer_id": each.producer_id,
                "producer_epoch": each.epoch,
                "last_sequence": each.last_sequence,
                "last_timestamp": each.last_timestamp_ms,
                "coordinator_epoch": each.coordinator_epoch,
                "current_txn_start_offset": each.transaction_start,
            }
            for each in log.active_producers()
        ],
    }
