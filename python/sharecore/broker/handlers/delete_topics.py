"""DeleteTopics: by name, or by id (version 6)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Topic

_TOPICS_SINCE = 6


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if context.api_version < _TOPICS_SINCE:
        asked = [(name, None) for name in request.topic_names]
    else:
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
    times = Counter(asked)
    answers = []
    for name, topic_id in times:
        answer: dict[str, Any] = {"name": name, "topic_id": topic_id, "error_message": None}
        try:
            if times[name, topic_id] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = _find(context, name, topic_id)
            answer.update(name=topic.name, topic_id=topic.topic_id)
            await context.broker.topics.delete(topic.name)
        except KafkaError as error:
            answer.update(error_code=error.code, error_message=error.message or None)
        answers.append(answer)
    return {"responses": answers}


def _find(context: RequestContext, name: str | None, topic_id: Any) -> Topic:
    if not context.broker.config.delete_topic_enable:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled (delete.topic.enable)."
        )
    if name is not None:
        if topic_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        topic = context.broker.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic.")
        return topic
    topic = context.broker.topics.by_id(topic_id) if topic_id is not None else None
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return topic
