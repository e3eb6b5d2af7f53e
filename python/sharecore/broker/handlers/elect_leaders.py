"""ElectLeaders: a partition has a single replica, which already leads it (KIP-460)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.topic_rules import TIME_IS_OVER
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_PREFERRED, _UNCLEAN = 0, 1


def handle(context: RequestContext, request: Any) -> Result:
    refused = refusal(context, request)
    if refused is not None:
        return context.run(refused)
    topics = context.broker.topics
    if request.topic_partitions is None:
        return {
            "replica_election_results": [{"topic": topic.name, "partition_result": []} for topic in topics]
        }
    return context.run(_elect_all(context, request))


def refusal(context: RequestContext, request: Any) -> Steps[dict[str, Any]] | None:
    """Return steps for the refusal of the whole request; None if it is valid."""
    if not context.may(Operation.ALTER, ResourceType.CLUSTER):
        return _refused(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.timeout_ms <= 0:
        return _refused(request, TIME_IS_OVER.code)
    if getattr(request, "election_type", _PREFERRED) not in (_PREFERRED, _UNCLEAN):
        text = f"Unknown election type {request.election_type}"
        return _refused(request, ErrorCode.INVALID_REQUEST, text)
    return None


def _elect_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    results = []
    for asked in request.topic_partitions:
        partitions = []
        for index in asked.partitions:
            partitions.append(_elect(context, asked.topic, index))
            yield
        results.append({"topic": asked.topic, "partition_result": partitions})
        yield
    return {"replica_election_results": results}


def _refused(request: Any, code: ErrorCode, text: str | None = None) -> Steps[dict[str, Any]]:
    results = []
    for asked in request.topic_partitions or ():
        partitions = []
        for index in asked.partitions:
            partitions.append({"partition_id": index, "error_code": code, "error_message": text})
            yield
        results.append({"topic": asked.topic, "partition_result": partitions})
        yield
    return {"error_code": code, "replica_election_results": results}


def _elect(context: RequestContext, name: str, index: int) -> dict[str, Any]:
    topic = context.broker.topics.get(name)
    if topic is None:
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif not 0 <= index < len(topic.partitions):
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    else:
        code, text = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    return {"partition_id": index, "error_code": code, "error_message": text}
