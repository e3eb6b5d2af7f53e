"""Common parts of the five share-state APIs: share partitions of one group, with a result for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sharecore.broker.context import RequestContext, Result
from sharecore.errors import DENIED, ErrorCode, KafkaError
from sharecore.security.acl import Operation as Action
from sharecore.security.acl import ResourceType
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Gather, Steps

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_NO_TOPIC = UUID(int=0)
_NEGATIVE = KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")

Operation = Callable[[SharePartitionKey, Any, Callable[[Any], None]], object]
"""Starts an operation on a share partition: key, its part of the request, completion callback."""


def each_partition(
    context: RequestContext,
    request: Any,
    operation: Operation,
    describe: Callable[[Any], dict[str, Any]] = lambda outcome: {},
    *,
    may_be_empty: bool = False,
) -> Result:
    """Run an operation for each share partition of a request.

    Args:
        context: the context.
        request: the request.
        operation: the operation.
        describe: returns the fields of a successful result.
        may_be_empty: whether a topic without partitions leaves the rest of the request valid.
    """
    complete = may_be_empty or all(topic.partitions for topic in request.topics)
    if not request.group_id or not complete:
        return {"results": []}
    return context.run(_run(context, request, operation, describe))


def _run(
    context: RequestContext,
    request: Any,
    operation: Operation,
    describe: Callable[[Any], dict[str, Any]],
) -> Steps[Result]:
    asked: dict[SharePartitionKey, Any] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            topic_id = topic.topic_id or _NO_TOPIC
            asked[SharePartitionKey(request.group_id, topic_id, partition.partition)] = partition
            yield
    if not context.may(Action.CLUSTER_ACTION, ResourceType.CLUSTER):
        refused = KafkaError(_DENIED, DENIED[_DENIED])
        return (yield from _answer(dict.fromkeys(asked, refused), describe))
    gather: Gather[SharePartitionKey] = Gather(asked)
    for key, partition in asked.items():
        if key.partition < 0:
            gather.put(key, _NEGATIVE)
        else:
            gather.run(key, operation, key, partition)
        yield
    return context.broker.turns.after(gather, lambda: _answer(gather.outcomes, describe))


def _answer(
    outcomes: dict[SharePartitionKey, Any], describe: Callable[[Any], dict[str, Any]]
) -> Steps[dict[str, Any]]:
    topics: dict[Any, list[dict[str, Any]]] = {}
    for key, outcome in outcomes.items():
        entry: dict[str, Any] = {"partition": key.partition}
        if isinstance(outcome, KafkaError):
            entry["error_code"], entry["error_message"] = outcome.code, outcome.message or None
        else:
            entry |= describe(outcome)
        topics.setdefault(key.topic_id, []).append(entry)
        yield
    return {
        "results": [
            {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()
        ]
    }
