"""What OffsetCommit and TxnOffsetCommit have in common: partitions with offsets in, partitions with errors
out.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType

Refused = dict[tuple[Any, int], ErrorCode]
"""Partitions whose offset is not taken, by the id or name of the topic, whichever the request has."""


def read_commits(
    context: RequestContext, topics: Any, refused: Refused, *, by_id: bool, expire_ms: int = -1
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets of a request whose partitions exist; the others are entered in `refused`."""
    broker = context.broker
    now_ms = broker.clock.now_ms()
    commits = {}
    for asked in topics:
        key = asked.topic_id if by_id else asked.name
        topic = broker.topics.by_id(key) if by_id else broker.topics.get(key)
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        name = topic.name if topic is not None else getattr(asked, "name", "")
        readable = context.may(Operation.READ, ResourceType.TOPIC, name)
        for part in asked.partitions:
            index = part.partition_index
            metadata = part.committed_metadata or ""
            if topic is None and by_id:
                refused[key, index] = missing
            elif not readable:
                refused[key, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None:
                refused[key, index] = missing
            elif not 0 <= index < len(topic.partitions):
                refused[key, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata.encode()) > broker.config.offset_metadata_max_bytes:
                refused[key, index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                commits[TopicPartition(topic.name, index)] = CommittedOffset(
                    part.committed_offset,
                    part.committed_leader_epoch,
                    metadata,
                    now_ms,
                    expire_ms,
                    topic.topic_id,
                )
    return commits


def answer_commit(topics: Any, refused: Refused, code: ErrorCode | None, *, by_id: bool) -> dict[str, Any]:
    """The answer: `code` for each partition that was not refused by itself; None for success."""
    name = "topic_id" if by_id else "name"
    return {
        "topics": [
            {
                name: getattr(topic, name),
                "partitions": [
                    {
                        "partition_index": part.partition_index,
                        "error_code": refused.get(
                            (getattr(topic, name), part.partition_index), code or ErrorCode.NONE
                        ),
                    }
                    for part in topic.partitions
                ],
            }
            for topic in topics
        ]
    }
