"""DescribeShareGroupOffsets: start offsets of share groups, and their lag (KIP-932, KIP-1226)."""

from __future__ import annotations

from typing import Any, NamedTuple

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.share.offsets import SharePartitionOffset
from sharecore.coordinator.topics import TopicInfo
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, reply


class _Wanted(NamedTuple):
    """A share partition that is asked for; `topic` is None for a name that no topic has."""

    group: int
    name: str
    topic: TopicInfo | None
    partition: int


def handle(context: RequestContext, request: Any) -> Result:
    offsets = context.broker.share.offsets
    refused: dict[int, KafkaError] = {}
    wanted: list[_Wanted] = []
    for number, group in enumerate(request.groups):
        wanted += _partitions(context, number, group, refused)
    gather: Gather[_Wanted] = Gather(wanted)
    for each in gather.outcomes:
        if not context.may(Operation.DESCRIBE, ResourceType.TOPIC, each.name):
            gather.put(each, SharePartitionOffset(error=KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
            continue
        if each.topic is None:
            gather.put(each, SharePartitionOffset())
            continue
        group_id = request.groups[each.group].group_id
        gather.run(each, offsets.describe, group_id, each.topic, each.partition)
    return reply(gather, lambda: _answer(request, gather.outcomes, refused))


def _partitions(
    context: RequestContext, number: int, group: Any, refused: dict[int, KafkaError]
) -> list[_Wanted]:
    share = context.broker.share
    try:
        context.broker.features.check_share_groups()
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        if group.topics is None:
            share.groups.find(group.group_id)
    except KafkaError as error:
        refused[number] = error
        return []
    if group.topics is None:
        return [
            _Wanted(number, topic.name, topic, partition)
            for topic, partitions in share.offsets.initialized(group.group_id)
            if context.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
            for partition in partitions
        ]
    return [
        _Wanted(number, topic.topic_name, _find(context, topic.topic_name), partition)
        for topic in group.topics
        for partition in topic.partitions
    ]


def _find(context: RequestContext, name: str) -> TopicInfo | None:
    """The topic, where the client may see it."""
    may = context.may(Operation.DESCRIBE, ResourceType.TOPIC, name, quiet=True)
    return context.broker.share.topics.find(name) if may else None


def _answer(
    request: Any, found: dict[_Wanted, SharePartitionOffset], refused: dict[int, KafkaError]
) -> dict[str, Any]:
    groups: list[dict[str, Any]] = []
    for number, group in enumerate(request.groups):
        entry: dict[str, Any] = {"group_id": group.group_id, "topics": []}
        if number in refused:
            entry["error_code"], entry["error_message"] = (
                refused[number].code,
                refused[number].message or None,
            )
        groups.append(entry)
    topics: dict[tuple[int, str], dict[str, Any]] = {}
    for number, group in enumerate(request.groups):
        for asked in () if number in refused else group.topics or ():
            topics[number, asked.topic_name] = _topic(asked.topic_name)
    for wanted, offset in found.items():
        topic = topics.setdefault((wanted.group, wanted.name), _topic(wanted.name))
        topic["topic_id"] = wanted.topic.topic_id if wanted.topic is not None else None
        entry = {
            "partition_index": wanted.partition,
            "start_offset": offset.start_offset,
            "leader_epoch": offset.leader_epoch,
            "lag": offset.lag,
        }
        if offset.error is not None:
            entry["error_code"], entry["error_message"] = offset.error.code, offset.error.message
        topic["partitions"].append(entry)
    for (number, _), topic in topics.items():
        groups[number]["topics"].append(topic)
    return {"groups": groups}


def _topic(name: str) -> dict[str, Any]:
    return {"topic_name": name, "topic_id": None, "partitions": []}
