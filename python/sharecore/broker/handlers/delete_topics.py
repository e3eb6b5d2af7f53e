"""DeleteTopics: deletes topics by name, or by id (version 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from sharecore.broker.context import EVERY_NAME, RequestContext
from sharecore.broker.topic_rules import TIME_IS_OVER, has_no_time, refused_deletion
from sharecore.errors import DENIED, NO_SUCH_PARTITION, NO_SUCH_TOPIC_ID, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Topic
from sharecore.waiting import Steps

_TOPICS_SINCE = 6
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    mutations = context.mutations(strict_since=5)
    answers = []
    pace = context.broker.turns.pace()
    for answer, topic in await judge_deletions(context, request):
        await pace.step()
        answers.append(answer)
        if topic is None:
            continue
        try:
            mutations.take(len(topic.partitions))
            await context.broker.topics.delete(topic.name)
        except KafkaError as error:
            answer.update(error_code=error.code, error_message=error.message or None)
    return {"throttle_time_ms": mutations.throttle_ms, "responses": answers}


async def judge_deletions(context: RequestContext, request: Any) -> list[tuple[dict[str, Any], Topic | None]]:
    """Return the answer for each requested topic, and the topic if it is to be deleted."""
    pace = context.broker.turns.pace()
    asked: list[tuple[str | None, UUID | None]] = []
    names, ids = Counter[Any](), Counter[Any]()
    judged: list[tuple[dict[str, Any], Topic | None]] = []
    for name, topic_id in _asked(context, request):
        asked.append((name, topic_id))
        if (name is None) == (topic_id is None):
            judged.append((refused_deletion(name, topic_id), None))
        elif name is not None:
            names[name] += 1
        else:
            ids[topic_id] += 1
        await pace.step()
    if has_no_time(request, names | ids):
        late = {"error_code": TIME_IS_OVER.code, "error_message": None}
        return [({"name": name, "topic_id": topic_id} | late, None) for name, topic_id in asked]
    rights = await context.finish(_rights(context, names, ids))
    met: set[UUID] = set()
    # names first: an id given as well is reported with its name, and nothing is deleted
    for name, topic_id in chain(((name, None) for name in names), ((None, topic_id) for topic_id in ids)):
        await pace.step()
        answer: dict[str, Any] = {"name": name, "topic_id": topic_id, "error_message": None}
        if topic_id in met and ids[topic_id] == 1:
            continue
        topic = None
        try:
            if names[name] > 1 or ids[topic_id] > 1:
                what = "id" if name is None else "name"
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
            found = _find(context, name, topic_id, rights, answer)
            if name is not None and found.topic_id in ids:
                met.add(found.topic_id)
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is also named by its id.")
            topic = found
        except KafkaError as error:
            answer.update(error_code=error.code, error_message=error.message or None)
        judged.append((answer, topic))
    return judged


def _asked(context: RequestContext, request: Any) -> Iterable[tuple[str | None, UUID | None]]:
    if context.api_version < _TOPICS_SINCE:
        return ((name, None) for name in request.topic_names)
    return ((topic.name, topic.topic_id) for topic in request.topics)


class _Rights(NamedTuple):
    """Topics that the client may describe, and delete."""

    seen: Container[str]
    deletable: Container[str]

    def require(self, names: Container[str], name: str) -> None:
        if name not in names:
            raise KafkaError(_DENIED, DENIED[_DENIED])


def _rights(context: RequestContext, names: Iterable[str], ids: Iterable[UUID | None]) -> Steps[_Rights]:
    if context.may(Operation.DELETE, ResourceType.CLUSTER, quiet=True):
        return _Rights(EVERY_NAME, EVERY_NAME)
    topics = context.broker.topics
    all_names = dict.fromkeys(names)
    for each in ids:
        topic = topics.by_id(each)
        if topic is not None:
            all_names[topic.name] = None
        yield
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, all_names)
    there = []
    for name in all_names:
        if name in seen and topics.get(name) is not None:
            there.append(name)
        yield
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.TOPIC, there)
    return _Rights(seen, deletable)


def _find(
    context: RequestContext, name: str | None, topic_id: Any, rights: _Rights, answer: dict[str, Any]
) -> Topic:
    """Return the topic to delete; set the name and id in `answer` that the client may see."""
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
    rights.require(rights.seen, name)
    if topic is not None and rights.deletable is not EVERY_NAME:
        answer.update(name=name)
        rights.require(rights.deletable, name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
    answer.update(name=topic.name, topic_id=topic.topic_id)
    return topic
