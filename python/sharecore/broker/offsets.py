"""Common parts of OffsetCommit and TxnOffsetCommit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

Key = tuple[Any, int]
"""A partition, by topic id or topic name as in the request."""


@dataclass(slots=True)
class Commits:
    """Offsets of a request.

    Attributes:
        taken: offsets to commit by the group's coordinator.
        refused: unknown or unauthorized partitions.
        has_too_large: whether partitions with too much metadata must be refused once the group has accepted.
        metadata_max_bytes: limit on metadata.
        gone: unknown or unauthorized topics.
    """

    metadata_max_bytes: int
    taken: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    refused: dict[Key, ErrorCode] = field(default_factory=dict)
    has_too_large: bool = False
    gone: set[Any] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether the coordinator has nothing to commit."""
        return not self.taken and not self.has_too_large


def read_commits(context: RequestContext, topics: Any, *, by_id: bool, expire_ms: int = -1) -> Steps[Commits]:
    """Return the offsets of a request, accepted or refused."""
    broker = context.broker
    now_ms = broker.clock.now_ms()
    commits = Commits(broker.config.offset_metadata_max_bytes)
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_key = broker.topics.by_id if by_id else broker.topics.get
    keys = [asked.topic_id if by_id else asked.name for asked in topics]
    names = (topic.name for key in keys if (topic := by_key(key)) is not None) if by_id else iter(keys)
    all_readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, names)
    for key, asked in zip(keys, topics, strict=True):
        topic = by_key(key)
        readable = (key if topic is None else topic.name) in all_readable
        if topic is None or not readable:
            commits.gone.add(key)
        for part in asked.partitions:
            index = part.partition_index
            metadata = part.committed_metadata or ""
            if topic is None and by_id:
                commits.refused[key, index] = missing
            elif not readable:
                commits.refused[key, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None:
                commits.refused[key, index] = missing
            elif not 0 <= index < len(topic.partitions):
                commits.refused[key, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata.encode()) > commits.metadata_max_bytes:
                commits.has_too_large = True
            else:
                commits.taken[TopicPartition(topic.name, index)] = CommittedOffset(
                    part.committed_offset,
                    part.committed_leader_epoch,
                    metadata,
                    now_ms,
                    expire_ms,
                    topic.topic_id,
                )
            yield
        yield
    return commits


def answer_commit(
    topics: Any, commits: Commits, code: ErrorCode | None, *, by_id: bool
) -> Steps[dict[str, Any]]:
    """Return the answer: `code` for each partition not refused individually; None for success.

    As in Apache Kafka's answer, each topic appears once. Unknown topics come first, and an existing topic
    appears only with its partitions.
    """
    name = "topic_id" if by_id else "name"
    answered: dict[Any, list[dict[str, Any]]] = {}
    for is_refused in (True, False):
        for topic in topics:
            key = getattr(topic, name)
            results = []
            for part in topic.partitions:
                if ((key, part.partition_index) in commits.refused) is is_refused:
                    outcome = _code(commits, code, key, part)
                    results.append({"partition_index": part.partition_index, "error_code": outcome})
                yield
            yield
            if results or (is_refused and key in commits.gone):
                answered.setdefault(key, []).extend(results)
    answers = []
    for key, partitions in answered.items():
        answers.append({name: key, "partitions": partitions})
        yield
    return {"topics": answers}


def refuse_all(topics: Any, code: ErrorCode, *, by_id: bool) -> Steps[dict[str, Any]]:
    """Return an answer with the same error for every partition."""
    name = "topic_id" if by_id else "name"
    answers = []
    for topic in topics:
        results = []
        for part in topic.partitions:
            results.append({"partition_index": part.partition_index, "error_code": code})
            yield
        answers.append({name: getattr(topic, name), "partitions": results})
        yield
    return {"topics": answers}


def _code(commits: Commits, code: ErrorCode | None, key: Any, part: Any) -> ErrorCode:
    place = key, part.partition_index
    if place in commits.refused:
        return commits.refused[place]
    if code is None and len((part.committed_metadata or "").encode()) > commits.metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return code or ErrorCode.NONE
