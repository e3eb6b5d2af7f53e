"""DescribeShareGroupOffsets: start offsets and lag of share groups (KIP-932, KIP-1226)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.share.offsets import SharePartitionOffset
from sharecore.coordinator.topics import TopicInfo
from sharecore.errors import DENIED, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, Steps

_NOTHING = SharePartitionOffset()
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_HIDDEN = SharePartitionOffset(error=KafkaError(_DENIED, DENIED[_DENIED]))


class _Asked(NamedTuple):
    """A requested topic of a group.

    Attributes:
        topic: None if each partition is answered with `instead`.
        partitions: ordered, with the number of answers for each; one answer for an existing topic.
    """

    topic: TopicInfo | None
    instead: SharePartitionOffset
    partitions: dict[int, int]


_Ask = tuple[int, str, int]
"""Number of the group in the request, topic name, and number of earlier refusals. Refusals are repeated as
often as named; results appear once.
"""
_Asks = dict[_Ask, _Asked]


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_describe(context, request))


def _describe(context: RequestContext, request: Any) -> Steps[Result]:
    describe = context.broker.share.offsets.describe
    names = (group.group_id for group in request.groups)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, names)
    refused: dict[int, KafkaError] = {}
    asks: _Asks = {}
    first: dict[str, int] = {}
    for number, group in enumerate(request.groups):
        yield
        if group.topics is None and first.setdefault(group.group_id, number) != number:
            continue
        try:
            refusals: Counter[str] = Counter()
            for name, asked in (yield from _topics(context, group, seen)):
                ask = number, name, refusals[name]
                refusals[name] += asked.topic is None
                asks.setdefault(ask, asked).partitions.update(asked.partitions)
                yield
        except KafkaError as error:
            refused[number] = error.with_traceback(None)  # 1 it would hold these variables in a cycle
    gather: Gather[_Ask] = Gather(asks)
    for ask, asked in asks.items():
        if asked.topic is None:
            gather.put(ask, dict.fromkeys(asked.partitions, asked.instead))
        else:
            gather.run(ask, describe, request.groups[ask[0]].group_id, asked.topic, asked.partitions)
        yield
    return context.broker.turns.after(gather, lambda: _answer(request, asks, gather.outcomes, refused, first))


def _topics(
    context: RequestContext, group: Any, groups_seen: Container[str]
) -> Steps[list[tuple[str, _Asked]]]:
    """Return the requested topics of a group; raise KafkaError if it is unknown or unauthorized."""
    share = context.broker.share
    context.broker.features.check_share_groups()
    if group.group_id not in groups_seen:
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if group.topics is None:
        share.groups.find(group.group_id)
        initialized = share.offsets.initialized(group.group_id)
        names = (topic.name for topic, _ in initialized)
        seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
        return [
            (topic.name, _Asked(topic, _NOTHING, dict.fromkeys(partitions, 1)))
            for topic, partitions in initialized
            if topic.name in seen
        ]
    names = (asked.topic_name for asked in group.topics)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    found = []
    for asked in group.topics:
        name = asked.topic_name
        topic, instead = (share.topics.find(name), _NOTHING) if name in seen else (None, _HIDDEN)
        times = dict(Counter(asked.partitions)) if topic is None else dict.fromkeys(asked.partitions, 1)
        found.append((name, _Asked(topic, instead, times)))
        yield
    return found


def _answer(
    request: Any,
    asks: _Asks,
    found: Mapping[_Ask, Mapping[int, SharePartitionOffset]],
    refused: Mapping[int, KafkaError],
    first: Mapping[str, int],
) -> Steps[dict[str, Any]]:
    groups: list[dict[str, Any]] = [{"group_id": group.group_id, "topics": []} for group in request.groups]
    for number, error in refused.items():
        groups[number] |= {"error_code": error.code, "error_message": error.message or None}
    for ask, asked in asks.items():
        number, name, _ = ask
        topic: dict[str, Any] = {
            "topic_name": name,
            "topic_id": asked.topic.topic_id if asked.topic is not None else None,
            "partitions": [],
        }
        for index, times in asked.partitions.items():
            entry = _partition(index, found[ask][index])
            topic["partitions"] += [entry] * times
            yield
        groups[number]["topics"].append(topic)
    for number, group in enumerate(request.groups):
        if group.topics is None:
            # a repeated group takes no more memory
            groups[number] = groups[first[group.group_id]]
    return {"groups": groups}


def _partition(index: int, offset: SharePartitionOffset) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "partition_index": index,
        "start_offset": offset.start_offset,
        "leader_epoch": offset.leader_epoch,
        "lag": offset.lag,
    }
    if offset.error is not None:
        entry["error_code"], entry["error_message"] = offset.error.code, offset.error.message
    return entry
