"""AlterPartitionReassignments: a partition's single replica cannot move (KIP-455)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.topic_rules import TIME_IS_OVER, check_replicas
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps


def handle(context: RequestContext, request: Any) -> Result:
    answer = settled(context, request)
    return context.run(_reassign_all(context, request)) if answer is None else answer


def settled(context: RequestContext, request: Any) -> dict[str, Any] | None:
    """Return the answer to a request that is refused as a whole or is empty; None for any other."""
    if not context.may(Operation.ALTER, ResourceType.CLUSTER):
        return _refused(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not request.topics:
        return _answer(request, [], "")
    if request.timeout_ms <= 0:
        return _refused(request, TIME_IS_OVER.code)
    return None


def _reassign_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    responses = []
    for asked in request.topics:
        partitions = []
        for partition in asked.partitions:
            answer: dict[str, Any] = {
                "partition_index": partition.partition_index,
                "error_code": ErrorCode.NONE,
                "error_message": None,
            }
            try:
                _reassign(context, asked.name, partition)
            except KafkaError as error:
                answer |= {"error_code": error.code, "error_message": error.message or None}
            partitions.append(answer)
            yield
        responses.append({"name": asked.name, "partitions": partitions})
        yield
    return _answer(request, responses, None)


def _reassign(context: RequestContext, name: str, partition: Any) -> None:
    """Raise KafkaError unless the partition exists and its requested replicas are the current ones."""
    topic = context.broker.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    index = partition.partition_index
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if partition.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(partition.replicas, context.broker.identity.node_id)


def _refused(request: Any, code: ErrorCode) -> dict[str, Any]:
    responses = [
        {
            "name": asked.name,
            "partitions": [
                {"partition_index": each.partition_index, "error_code": code, "error_message": None}
                for each in asked.partitions
            ],
        }
        for asked in request.topics
    ]
    return {"error_code": code, "error_message": None, "responses": responses}


def _answer(request: Any, responses: list[dict[str, Any]], message: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"error_message": message, "responses": responses}
    # version 1 repeats it
    if hasattr(request, "allow_replication_factor_change"):
        answer["allow_replication_factor_change"] = request.allow_replication_factor_change
    return answer
