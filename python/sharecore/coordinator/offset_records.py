"""Records of committed offsets in `__consumer_offsets` (OffsetCommit): key and value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from sharecore.coordinator_log.record_schema import RecordSchema, VersionedSchema, field, number_of
from sharecore.protocol.schema import FieldSpec

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1

NO_TIME = -1

_KEY_FIELDS = (field("group", "string"), field("topic", "string"), field("partition", "int32"))
_KEYS = {
    kind: RecordSchema("OffsetCommitKey", kind, *_KEY_FIELDS)
    for kind in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT)
}

_OFFSET = field("offset", "int64")
_LEADER_EPOCH = field("leader_epoch", "int32", default=-1)
_METADATA = field("metadata", "string")
_COMMIT_TIME = field("commit_ms", "int64")
_EXPIRE_TIME = field("expire_ms", "int64", default=NO_TIME)
_TOPIC_ID = field("topic_id", "uuid", tag=0, default=None)
_NEWER = {"leader_epoch": -1, "expire_ms": NO_TIME, "topic_id": None}


def _value(version: int, *fields: FieldSpec, flexible: bool = False) -> RecordSchema:
    names = {spec.name for spec in fields}
    missing = {name: default for name, default in _NEWER.items() if name not in names}
    return RecordSchema("OffsetCommitValue", version, *fields, flexible=flexible, **missing)


_EXPIRING = _value(1, _OFFSET, _METADATA, _COMMIT_TIME, _EXPIRE_TIME)
_NEWEST = _value(4, _OFFSET, _LEADER_EPOCH, _METADATA, _COMMIT_TIME, _TOPIC_ID, flexible=True)
_VALUES = VersionedSchema(
    _value(0, _OFFSET, _METADATA, _COMMIT_TIME),
    _EXPIRING,
    _value(2, _OFFSET, _METADATA, _COMMIT_TIME),
    _value(3, _OFFSET, _LEADER_EPOCH, _METADATA, _COMMIT_TIME),
    _NEWEST,
)


class TopicPartition(NamedTuple):
    """A partition of a topic by name."""

    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """A committed offset of one partition.

    Args:
        offset: offset of the next record to consume.
        leader_epoch: leader epoch of the last consumed record; -1 if unknown.
        metadata: text provided by the consumer.
        commit_ms: commit time.
        expire_ms: expiration time requested by an old client; -1 for the broker's retention.
        topic_id: the topic's id; None for commits by name only.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = NO_TIME
    topic_id: UUID | None = None


Commits = Mapping[TopicPartition, CommittedOffset]


def encode_offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Return the key of a group's offset for a partition."""
    return _KEYS[OFFSET_COMMIT].write(group=group_id, topic=partition.topic, partition=partition.partition)


def decode_offset_key(data: bytes) -> tuple[str, TopicPartition]:
    """Return group and partition of a key; raise ValueError if it is invalid."""
    key = _KEYS[number_of(data)].read(data)
    return key.group, TopicPartition(key.topic, key.partition)


def encode_offset(value: CommittedOffset) -> bytes:
    """Return the value of a committed offset; only version 1 can hold an expiration time."""
    schema = _NEWEST if value.expire_ms == NO_TIME else _EXPIRING
    return schema.pack(value._asdict())


def decode_offset(data: bytes) -> CommittedOffset:
    """Read a value of any version; raise ValueError if it is invalid."""
    value = _VALUES.read(data)
    return CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_ms, value.expire_ms, value.topic_id
    )
