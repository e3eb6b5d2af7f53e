"""ListPartitionReassignments: always empty, as partitions have one replica."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps


def handle(context: RequestContext, request: Any) -> Result:
    if context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return {"error_message": None, "topics": []}
    return context.run(refuse(request))


def refuse(request: Any) -> Steps[dict[str, Any]]:
    """Return a refusal that names all requested partitions, as Apache Kafka does."""
    topics = []
    for topic in request.topics or ():
        partitions = []
        for index in topic.partition_indexes:
            partitions.append({"partition_index": index})
            yield
        topics.append({"name": topic.name, "partitions": partitions})
        yield
    return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "error_message": None, "topics": topics}
