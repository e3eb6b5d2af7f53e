"""What the five share-state APIs have in common: share partitions of one group in, a result for each out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharecore.broker.context import Result
from sharecore.broker.gather import Gather
from sharecore.errors import KafkaError
from sharecore.sharestate.keys import SharePartitionKey

Operation = Callable[[SharePartitionKey, Any, Callable[[Any], None]], object]
"""Begins what is asked for a share partition: its key, its part of the request, what to call in the end."""


def each_partition(
    request: Any, operation: Operation, describe: Callable[[Any], dict[str, Any]] = lambda outcome: {}
) -> Result:
    """Runs an operation for each share partition of a request.

    Args:
        describe: the fields of a result, out of an outcome that is no error.
    """
    if not request.group_id:
        return {"results": []}
    asked = {
        SharePartitionKey(request.group_id, topic.topic_id, partition.partition): partition
        for topic in request.topics
        if topic.topic_id is not None
        for partition in topic.partitions
    }
    gather: Gather[SharePartitionKey] = Gather(asked)
    for key, partition in asked.items():
        gather.run(key, operation, key, partition)
    return gather.answer(lambda outcomes: _answer(outcomes, describe))


def _answer(
    outcomes: dict[SharePartitionKey, Any], describe: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    topics: dict[Any, list[dict[str, Any]]] = {}
    for key, outcome in outcomes.items():
        entry: dict[str, Any] = {"partition": key.partition}
        if isinstance(outcome, KafkaError):
            entry["error_code"], entry["error_message"] = outcome.code, outcome.message or None
        else:
            entry |= describe(outcome)
        topics.setdefault(key.topic_id, []).append(entry)
    return {
        "results": [
            {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()
        ]
    }
