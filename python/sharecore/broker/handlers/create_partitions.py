"""CreatePartitions: adds partitions to topics."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import PARTITIONS_PER_REQUEST_MAX, TIME_IS_OVER, check_replicas, has_no_time
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    times = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    alterable = await context.finish(context.may_each(Operation.ALTER, ResourceType.TOPIC, times))
    if has_no_time(request, times, alterable):
        late = {"error_code": TIME_IS_OVER.code, "error_message": None}
        return {"results": [{"name": topic.name} | late for topic in request.topics]}
    mutations, pace = context.mutations(strict_since=3), context.broker.turns.pace()
    answers = []
    for name in times:
        await pace.step()
        topic = by_name[name]
        answer: dict[str, Any] = {"name": name, "error_message": None}
        try:
            if times[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if name not in alterable:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            have = _check(context, topic)
            mutations.take(topic.count - have)
            if not request.validate_only:
                await context.broker.topics.add_partitions(name, topic.count)
        except KafkaError as error:
            answer.update(error_code=error.code, error_message=error.message or None)
        answers.append(answer)
    return {"throttle_time_ms": mutations.throttle_ms, "results": answers}


def _check(context: RequestContext, asked: Any) -> int:
    """Return the current number of partitions; raise KafkaError if the request is invalid."""
    topic = context.broker.topics.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    have = len(topic.partitions)
    if asked.count == have:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if asked.count < have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {have} partition(s); "
            f"{asked.count} would not be an increase.",
        )
    if asked.count - have > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    if asked.assignments is None:
        return have
    if len(asked.assignments) != asked.count - have:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {asked.count - have} additional partition(s), "
            f"but only {len(asked.assignments)} assignment(s) were specified.",
        )
    for assignment in asked.assignments:
        check_replicas(assignment.broker_ids, context.broker.identity.node_id)
    return have
