"""DescribeProducers: who has written to partitions, and with which open transactions (KIP-664)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import check_name
from sharecore.errors import NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    return {
        "topics": [
            {"name": topic.name, "partitions": _partitions(context, topic)} for topic in request.topics
        ]
    }


def _partitions(context: RequestContext, topic: Any) -> list[dict[str, Any]]:
    try:
        check_name(topic.name)
        context.require(Operation.READ, ResourceType.TOPIC, topic.name, said=True)
        if context.broker.topics.get(topic.name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
    except KafkaError as error:
        refused = {"error_code": error.code, "error_message": error.message}
        return [{"partition_index": index, **refused} for index in topic.partition_indexes]
    return [_describe(context, topic.name, index) for index in topic.partition_indexes]


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
