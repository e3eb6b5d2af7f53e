"""AlterShareGroupOffsets: sets start offsets of a share group without members (KIP-932)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.features import NO_SHARE_GROUPS
from sharecore.coordinator.topics import TopicInfo
from sharecore.errors import DENIED, NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Done, Gather, Steps

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_BY_STRATEGY = -1

_Name = tuple[str, int]


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups(NO_SHARE_GROUPS)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id, said=True)
    return context.run(_alter(context, request))


def _alter(context: RequestContext, request: Any) -> Steps[Result]:
    share = context.broker.share
    names = (topic.topic_name for topic in request.topics if topic.partitions)
    readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, names)
    gather: Gather[_Name] = Gather()
    ids: dict[str, TopicInfo | None] = {}
    offsets: dict[tuple[TopicInfo, int], int] = {}
    done: dict[tuple[TopicInfo, int], Done] = {}
    for topic in request.topics:
        info = ids[topic.topic_name] = share.topics.find(topic.topic_name)
        yield
        for partition in topic.partitions:
            name = topic.topic_name, partition.partition_index
            if topic.topic_name not in readable:
                gather.put(name, KafkaError(_DENIED, DENIED[_DENIED]))
            elif info is None or not 0 <= partition.partition_index < info.partitions:
                gather.put(name, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION))
            elif partition.start_offset < _BY_STRATEGY:
                gather.put(name, KafkaError(ErrorCode.INVALID_REQUEST, "The start offset is negative."))
            else:
                share_partition = info, partition.partition_index
                if share_partition not in offsets:
                    done[share_partition] = gather.part(name)
                offsets[share_partition] = partition.start_offset
            yield
    existing = [topic for topic in ids.values() if topic is not None]
    share.offsets.alter(request.group_id, existing, offsets, done)
    return context.broker.turns.after(gather, lambda: _answer(request.topics, gather.outcomes, ids))


def _answer(
    asked: Any, outcomes: dict[_Name, KafkaError | None], ids: dict[str, TopicInfo | None]
) -> Steps[dict[str, Any]]:
    """Return the answer: as in Kafka, each topic once, and each partition as often as requested."""
    topics: dict[str, list[dict[str, Any]]] = {name: [] for name, topic in ids.items() if topic is not None}
    for topic in asked:
        for partition in topic.partitions:
            entry: dict[str, Any] = {"partition_index": partition.partition_index}
            error = outcomes[topic.topic_name, partition.partition_index]
            if error is not None:
                entry["error_code"], entry["error_message"] = error.code, error.message or None
            topics.setdefault(topic.topic_name, []).append(entry)
            yield
    responses: list[dict[str, Any]] = []
    for name, partitions in topics.items():
        found = ids[name]
        topic_id = None if found is None else found.topic_id
        responses.append({"topic_name": name, "topic_id": topic_id, "partitions": partitions})
        yield
    return {"responses": responses}
