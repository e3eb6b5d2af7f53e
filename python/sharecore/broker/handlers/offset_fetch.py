"""OffsetFetch: committed offsets of groups."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.offset_records import Commits, TopicPartition
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_GROUPS_SINCE = 8
_IDS_SINCE = 10
_GROUP_ERROR_SINCE = 2
_NO_OFFSET = -1


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_fetch_all(context, request))


def _fetch_all(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    stable = request.require_stable
    asks = request.groups if context.api_version >= _GROUPS_SINCE else [request]
    names = (asked.group_id for asked in asks)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, names)
    if context.api_version < _GROUPS_SINCE:
        answer = yield from _fetch(context, request, None, -1, seen, stable=stable)
        code = answer.get("error_code", ErrorCode.NONE)
        if code and context.api_version < _GROUP_ERROR_SINCE:
            return {"topics": _all_absent(request.topics, code)}
        return {"topics": answer["topics"], "error_code": code}
    groups = []
    whole: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in asks:
        member = group.member_id, group.member_epoch
        # a repeated group takes no more memory
        known = whole.get((group.group_id, *member)) if group.topics is None else None
        if known is None:
            known = yield from _fetch(context, group, *member, seen, stable=stable)
            if group.topics is None:
                whole[(group.group_id, *member)] = known
        groups.append(known)
        yield
    return {"groups": groups}


def _fetch(
    context: RequestContext,
    asked: Any,
    member_id: str | None,
    member_epoch: int,
    groups_seen: Container[str],
    *,
    stable: bool,
) -> Steps[dict[str, Any]]:
    group_id = asked.group_id
    try:
        if group_id not in groups_seen:
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        commits = context.broker.groups.commits.fetch(group_id, member_id, member_epoch)
    except KafkaError as error:
        return {"group_id": group_id, "topics": [], "error_code": error.code}
    by_id = context.api_version >= _IDS_SINCE
    topics = []
    wanted = yield from _wanted(context, asked.topics, commits, by_id=by_id)
    names = (name for _, name, _ in wanted if name is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    for key, name, partitions in wanted:
        refusal = ErrorCode.UNKNOWN_TOPIC_ID
        if name is not None and name not in seen:
            if asked.topics is None:
                continue
            name, refusal = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answers = []
        for index in partitions:
            if name is None:
                answers.append(_absent(index, refusal))
            else:
                partition = TopicPartition(name, index)
                answers.append(_partition(context, group_id, partition, commits, stable=stable))
            yield
        topics.append({"topic_id" if by_id else "name": key, "partitions": answers})
    return {"group_id": group_id, "topics": topics}


def _wanted(
    context: RequestContext, topics: Any, commits: Commits, *, by_id: bool
) -> Steps[list[tuple[Any, str | None, list[int]]]]:
    """Return the requested partitions, or all: id or name as in the answer, topic name, indexes."""
    catalogue = context.broker.topics
    if topics is not None:
        found = []
        for asked in topics:
            key = asked.topic_id if by_id else asked.name
            topic = catalogue.by_id(key) if by_id else None
            name = (topic.name if topic is not None else None) if by_id else key
            found.append((key, name, asked.partition_indexes))
            yield
        return found
    by_name: dict[str, list[int]] = {}
    for partition in sorted(commits):
        by_name.setdefault(partition.topic, []).append(partition.partition)
        yield
    everything: list[tuple[Any, str | None, list[int]]] = []
    for name, partitions in by_name.items():
        topic = catalogue.get(name)
        if not by_id:
            everything.append((name, name, partitions))
        elif topic is not None:
            everything.append((topic.topic_id, name, partitions))
    return everything


def _partition(
    context: RequestContext, group_id: str, partition: TopicPartition, commits: Commits, *, stable: bool
) -> dict[str, Any]:
    if stable and context.broker.groups.commits.is_unstable(group_id, partition):
        return _absent(partition.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    value = commits.get(partition)
    if value is None:
        return _absent(partition.partition, ErrorCode.NONE)
    return {
        "partition_index": partition.partition,
        "committed_offset": value.offset,
        "committed_leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
    }


def _all_absent(topics: Any, code: ErrorCode) -> list[dict[str, Any]]:
    """Return a refusal per partition, as the answer has no field for one of the whole group."""
    return [
        {"name": topic.name, "partitions": [_absent(index, code) for index in topic.partition_indexes]}
        for topic in topics
    ]


def _absent(index: int, code: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": _NO_OFFSET,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": code,
    }
