"""DescribeQuorum: this broker is the only voter and the leader (KIP-595)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_TOPIC = "__cluster_metadata"
_EPOCH, _END_OFFSET = 1, 0
"""The leader never changes, and metadata has no log: it is in the store."""
_NOT_HERE = "This server does not host this topic-partition."


def handle(context: RequestContext, request: Any) -> Result:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER, said=True)
    if names_quorum(request):
        return {"error_message": "", "topics": [_quorum(context)], "nodes": _nodes(context)}
    return context.run(unknown(request))


def names_quorum(request: Any) -> bool:
    """Return whether a request names only the metadata log."""
    if len(request.topics) != 1 or request.topics[0].topic_name != _TOPIC:
        return False
    partitions = request.topics[0].partitions
    return len(partitions) == 1 and partitions[0].partition_index == 0


def unknown(request: Any) -> Steps[dict[str, Any]]:
    """Return the answer for partitions outside of the quorum."""
    topics: list[dict[str, Any]] = []
    for topic in request.topics:
        partitions: list[dict[str, Any]] = []
        for partition in topic.partitions:
            partitions.append(_unknown(partition.partition_index))
            yield
        topics.append({"topic_name": topic.topic_name, "partitions": partitions})
        yield
    return {"error_message": "", "topics": topics, "nodes": []}


def _quorum(context: RequestContext) -> dict[str, Any]:
    node_id, now_ms = context.broker.identity.node_id, context.broker.clock.now_ms()
    voter = {
        "replica_id": node_id,
        "replica_directory_id": None,
        "log_end_offset": _END_OFFSET,
        "last_fetch_timestamp": now_ms,
        "last_caught_up_timestamp": now_ms,
    }
    partition = {
        "partition_index": 0,
        "error_message": "",
        "leader_id": node_id,
        "leader_epoch": _EPOCH,
        "high_watermark": _END_OFFSET,
        "current_voters": [voter],
        "observers": [],
    }
    return {"topic_name": _TOPIC, "partitions": [partition]}


def _nodes(context: RequestContext) -> list[dict[str, Any]]:
    listener = context.connection.listener
    return [
        {"node_id": node.node_id, "listeners": [{"name": listener, "host": node.host, "port": node.port}]}
        for node in context.broker.cluster.nodes(listener)
    ]


def _unknown(index: int) -> dict[str, Any]:
    return {
        "partition_index": index,
        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "error_message": _NOT_HERE,
        "leader_id": 0,
        "leader_epoch": 0,
        "high_watermark": 0,
        "current_voters": [],
        "observers": [],
    }
