"""OffsetFetch: where consumers go on."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.coordinator.offset_records import Commits, TopicPartition
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType

_GROUPS_SINCE = 8
_IDS_SINCE = 10
_GROUP_ERROR_SINCE = 2
_NO_OFFSET = -1


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if context.api_version < _GROUPS_SINCE:
        answer = _fetch(context, request, request.group_id, None, -1, stable=request.require_stable)
        code = answer.get("error_code", ErrorCode.NONE)
        if code and context.api_version < _GROUP_ERROR_SINCE:
            return {"topics": _all_absent(request.topics, code)}
        return {"topics": answer["topics"], "error_code": code}
    return {
        "groups": [
            _fetch(
                context,
                group,
                group.group_id,
                group.member_id,
                group.member_epoch,
                stable=request.require_stable,
            )
            for group in request.groups
        ]
    }


def _fetch(
    context: RequestContext,
    asked: Any,
    group_id: str,
    member_id: str | None,
    member_epoch: int,
    *,
    stable: bool,
) -> dict[str, Any]:
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
        commits = context.broker.groups.commits.fetch(group_id, member_id, member_epoch)
    except KafkaError as error:
        return {"group_id": group_id, "topics": [], "error_code": error.code}
    by_id = context.api_version >= _IDS_SINCE
    topics = []
    for key, name, partitions in _wanted(context, asked.topics, commits, by_id=by_id):
        seen = name is None or context.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        if not seen and asked.topics is None:
            continue
        refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED if name is not None else ErrorCode.UNKNOWN_TOPIC_ID
        answers = [
            _partition(context, group_id, TopicPartition(name, index), commits, stable=stable)
            if name is not None and seen
            else _absent(index, refusal)
            for index in partitions
        ]
        topics.append({"topic_id" if by_id else "name": key, "partitions": answers})
    return {"group_id": group_id, "topics": topics}


def _wanted(
    context: RequestContext, topics: Any, commits: Commits, *, by_id: bool
) -> list[tuple[Any, str | None, list[int]]]:
    """Id or name as the answer has it, name if there is such a topic, and partitions: those asked for, or
    all.
    """
    catalogue = context.broker.topics
    if topics is not None:
        found = []
        for asked in topics:
            key = asked.topic_id if by_id else asked.name
            topic = catalogue.by_id(key) if by_id else None
            name = (topic.name if topic is not None else None) if by_id else key
            found.append((key, name, asked.partition_indexes))
        return found
    by_name: dict[str, list[int]] = {}
    for partition in sorted(commits):
        by_name.setdefault(partition.topic, []).append(partition.partition)
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
    """A refusal where the answer has no place for one of the whole group."""
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
