"""DeleteShareGroupOffsets: deletes topics' state from a share group without members (KIP-932)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.features import NO_SHARE_GROUPS
from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator.topics import TopicInfo
from sharecore.errors import DENIED, NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, Steps, reply

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups(NO_SHARE_GROUPS)
    share = context.broker.share
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id, said=True)
    group = share.offsets.deletable(request.group_id)
    return context.run(_delete(context, request, group))


def _delete(context: RequestContext, request: Any, group: ShareGroup) -> Steps[Result]:
    share = context.broker.share
    asked: dict[str, None] = dict.fromkeys(topic.topic_name for topic in request.topics)
    readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, asked)
    # for a group that never had state, Kafka's answer has no topics
    named = [name for name in asked if group.has_topics_record or name not in readable]
    gather: Gather[str] = Gather(named)
    known: dict[str, TopicInfo] = {}
    for name in named:
        yield
        topic = share.topics.find(name)
        if name not in readable:
            gather.put(name, KafkaError(_DENIED, DENIED[_DENIED]))
        elif topic is None:
            gather.put(name, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION))
        elif topic.topic_id not in group.initialized:
            gather.put(
                name,
                KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."),
            )
        else:
            known[name] = topic
            gather.run(name, share.offsets.delete, request.group_id, [topic])
    return reply(gather, lambda: _answer(request.topics, gather.outcomes, known))


def _answer(
    asked: Any, outcomes: dict[str, KafkaError | None], known: dict[str, TopicInfo]
) -> dict[str, Any]:
    """Return the answer: as in Kafka, deleted topics once, refused ones as often as requested."""
    names = [topic.topic_name for topic in asked if topic.topic_name in outcomes]
    responses = []
    for name in [*known, *(name for name in names if name not in known)]:
        topic, error = known.get(name), outcomes[name]
        entry: dict[str, Any] = {"topic_name": name, "topic_id": topic and topic.topic_id}
        if error is not None:
            entry["error_code"], entry["error_message"] = error.code, error.message or None
        responses.append(entry)
    return {"responses": responses}
