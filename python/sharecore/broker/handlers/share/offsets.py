"""Start offsets of share groups (KIP-932)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sharecore.broker.features import NO_SHARE_GROUPS
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator.share.offsets import SharePartitionOffset
from sharecore.coordinator.topics import TopicInfo
from sharecore.errors import DENIED, NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Begun, Done, Gather, Steps, reply

if TYPE_CHECKING:
    from sharecore.protocol import messages

_NOTHING = SharePartitionOffset()
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_HIDDEN = SharePartitionOffset(error=KafkaError(_DENIED, DENIED[_DENIED]))
_BY_STRATEGY = -1

_Name = tuple[str, int]


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


def describe_share_group_offsets(
    context: RequestContext, request: messages.DescribeShareGroupOffsetsRequest
) -> Result[messages.DescribeShareGroupOffsetsResponse]:
    """Return start offsets and lag of share groups (KIP-932, KIP-1226)."""
    return context.run(_describe(context, request))


def _describe(
    context: RequestContext, request: messages.DescribeShareGroupOffsetsRequest
) -> Steps[Begun[messages.DescribeShareGroupOffsetsResponse]]:
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
            refused[number] = error.with_traceback(None)  # it would hold these variables in a cycle
    gather: Gather[_Ask] = Gather(asks)
    for ask, asked in asks.items():
        if asked.topic is None:
            gather.put(ask, dict.fromkeys(asked.partitions, asked.instead))
        else:
            gather.run(ask, describe, request.groups[ask[0]].group_id, asked.topic, asked.partitions)
        yield
    return context.broker.turns.after(
        gather, lambda: _answer_description(request, asks, gather.outcomes, refused, first)
    )


def _topics(
    context: RequestContext,
    group: messages.DescribeShareGroupOffsetsRequestGroup,
    groups_seen: Container[str],
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


def _answer_description(
    request: messages.DescribeShareGroupOffsetsRequest,
    asks: _Asks,
    found: Mapping[_Ask, Mapping[int, SharePartitionOffset]],
    refused: Mapping[int, KafkaError],
    first: Mapping[str, int],
) -> Steps[messages.DescribeShareGroupOffsetsResponse]:
    topics: list[list[messages.DescribeShareGroupOffsetsResponseTopic]] = [[] for _ in request.groups]
    groups: list[messages.DescribeShareGroupOffsetsResponseGroup] = [
        {"group_id": group.group_id, "topics": described}
        for group, described in zip(request.groups, topics, strict=True)
    ]
    for number, error in refused.items():
        groups[number]["error_code"], groups[number]["error_message"] = error.code, error.message or None
    for ask, asked in asks.items():
        number, name, _ = ask
        partitions: list[messages.DescribeShareGroupOffsetsResponsePartition] = []
        for index, times in asked.partitions.items():
            entry = _partition(index, found[ask][index])
            partitions += [entry] * times
            yield
        topic_id = asked.topic.topic_id if asked.topic is not None else None
        topics[number].append({"topic_name": name, "topic_id": topic_id, "partitions": partitions})
    for number, group in enumerate(request.groups):
        if group.topics is None:
            # a repeated group takes no more memory
            groups[number] = groups[first[group.group_id]]
    return {"groups": groups}


def _partition(
    index: int, offset: SharePartitionOffset
) -> messages.DescribeShareGroupOffsetsResponsePartition:
    entry: messages.DescribeShareGroupOffsetsResponsePartition = {
        "partition_index": index,
        "start_offset": offset.start_offset,
        "leader_epoch": offset.leader_epoch,
        "lag": offset.lag,
    }
    if offset.error is not None:
        entry["error_code"], entry["error_message"] = offset.error.code, offset.error.message
    return entry


def alter_share_group_offsets(
    context: RequestContext, request: messages.AlterShareGroupOffsetsRequest
) -> Result[messages.AlterShareGroupOffsetsResponse]:
    """Set start offsets of a share group without members (KIP-932); needs READ on the group."""
    context.broker.features.check_share_groups(NO_SHARE_GROUPS)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id, said=True)
    return context.run(_alter(context, request))


def _alter(
    context: RequestContext, request: messages.AlterShareGroupOffsetsRequest
) -> Steps[Begun[messages.AlterShareGroupOffsetsResponse]]:
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
    return context.broker.turns.after(
        gather, lambda: _answer_alteration(request.topics, gather.outcomes, ids)
    )


def _answer_alteration(
    asked: Iterable[messages.AlterShareGroupOffsetsRequestTopic],
    outcomes: dict[_Name, KafkaError | None],
    ids: dict[str, TopicInfo | None],
) -> Steps[messages.AlterShareGroupOffsetsResponse]:
    """Return the answer: as in Kafka, each topic once, and each partition as often as requested."""
    topics: dict[str, list[messages.AlterShareGroupOffsetsResponsePartition]] = {
        name: [] for name, topic in ids.items() if topic is not None
    }
    for topic in asked:
        for partition in topic.partitions:
            entry: messages.AlterShareGroupOffsetsResponsePartition = {
                "partition_index": partition.partition_index
            }
            error = outcomes[topic.topic_name, partition.partition_index]
            if error is not None:
                entry["error_code"], entry["error_message"] = error.code, error.message or None
            topics.setdefault(topic.topic_name, []).append(entry)
            yield
    responses: list[messages.AlterShareGroupOffsetsResponseTopic] = []
    for name, partitions in topics.items():
        found = ids[name]
        topic_id = None if found is None else found.topic_id
        responses.append({"topic_name": name, "topic_id": topic_id, "partitions": partitions})
        yield
    return {"responses": responses}


def delete_share_group_offsets(
    context: RequestContext, request: messages.DeleteShareGroupOffsetsRequest
) -> Result[messages.DeleteShareGroupOffsetsResponse]:
    """Delete topics' state from a share group without members (KIP-932); needs DELETE on the group."""
    context.broker.features.check_share_groups(NO_SHARE_GROUPS)
    share = context.broker.share
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id, said=True)
    group = share.offsets.deletable(request.group_id)
    return context.run(_delete(context, request, group))


def _delete(
    context: RequestContext, request: messages.DeleteShareGroupOffsetsRequest, group: ShareGroup
) -> Steps[Begun[messages.DeleteShareGroupOffsetsResponse]]:
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
    return reply(gather, lambda: _answer_deletion(request.topics, gather.outcomes, known))


def _answer_deletion(
    asked: Iterable[messages.DeleteShareGroupOffsetsRequestTopic],
    outcomes: dict[str, KafkaError | None],
    known: dict[str, TopicInfo],
) -> messages.DeleteShareGroupOffsetsResponse:
    """Return the answer: as in Kafka, deleted topics once, refused ones as often as requested."""
    names = [topic.topic_name for topic in asked if topic.topic_name in outcomes]
    responses: list[messages.DeleteShareGroupOffsetsResponseTopic] = []
    for name in [*known, *(name for name in names if name not in known)]:
        topic, error = known.get(name), outcomes[name]
        entry: messages.DeleteShareGroupOffsetsResponseTopic = {
            "topic_name": name,
            "topic_id": topic and topic.topic_id,
        }
        if error is not None:
            entry["error_code"], entry["error_message"] = error.code, error.message or None
        responses.append(entry)
    return {"responses": responses}
