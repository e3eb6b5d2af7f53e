"""DeleteTopics: by name, or by id (version 6)."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import TIME_IS_OVER, has_no_time, refused_deletion
from sharecore.errors import NO_SUCH_PARTITION, NO_SUCH_TOPIC_ID, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Topic

_TOPICS_SINCE = 6


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if context.api_version < _TOPICS_SINCE:
        asked = [(name, None) for name in request.topic_names]
    else:
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
    mutations = context.mutations(strict_since=5)
    answers = [refused_deletion(*pair) for pair in asked if (pair[0] is None) == (pair[1] is None)]
    names = Counter(name for name, topic_id in asked if topic_id is None and name is not None)
    ids = Counter(topic_id for name, topic_id in asked if name is None and topic_id is not None)
    if has_no_time(request, names | ids):
        late = {"error_code": TIME_IS_OVER.code, "error_message": None}
        return {"responses": [{"name": name, "topic_id": topic_id} | late for name, topic_id in asked]}
    met: set[UUID] = set()
    # names first: an id that is given as well is told of with its name, and nothing is deleted
    for name, topic_id in [*((name, None) for name in names), *((None, topic_id) for topic_id in ids)]:
        answer: dict[str, Any] = {"name": name, "topic_id": topic_id, "error_message": None}
        if topic_id in met and ids[topic_id] == 1:
            continue
        try:
            if names[name] > 1 or ids[topic_id] > 1:
                what = "id" if name is None else "name"
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
            topic = _find(context, name, topic_id, answer)
            if name is not None and topic.topic_id in ids:
                met.add(topic.topic_id)
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is named by its id as well.")
            mutations.take(len(topic.partitions))
            await context.broker.topics.delete(topic.name)
        except KafkaError as error:
            answer.update(error_code=error.code, error_message=error.message or None)
        answers.append(answer)
    return {"throttle_time_ms": mutations.throttle_ms, "responses": answers}


def _find(context: RequestContext, name: str | None, topic_id: Any, answer: dict[str, Any]) -> Topic:
    """The topic to delete; `answer` gets the name and the id that the client may know."""
    broker = context.broker
    if not broker.config.delete_topic_enable:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled (delete.topic.enable)."
        )
    if name is not None:
        topic = broker.topics.get(name)
    else:
        topic = broker.topics.by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, NO_SUCH_TOPIC_ID)
        name = topic.name
    if not context.may(Operation.DELETE, ResourceType.CLUSTER):
        context.require(Operation.DESCRIBE, ResourceType.TOPIC, name, said=True)
        if topic is not None:
            answer.update(name=name)
            context.require(Operation.DELETE, ResourceType.TOPIC, name, said=True)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
    answer.update(name=topic.name, topic_id=topic.topic_id)
    return topic
