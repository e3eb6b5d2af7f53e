"""Records of committed offsets in `__consumer_offsets`: OffsetCommit, key and value."""

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
    """A partition by the name of its topic."""

    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """What a consumer committed for one partition.

    Args:
        offset: of the next record to consume.
        leader_epoch: of the last record consumed; -1 when the consumer did not say.
        metadata: the consumer's text.
        commit_ms: when it was committed.
        expire_ms: when it is to be forgotten, as an old client asked; -1 leaves it to the broker.
        topic_id: of the topic it was committed for; None in commits that name only the topic.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = NO_TIME
    topic_id: UUID | None = None


Commits = Mapping[TopicPartition, CommittedOffset]


def encode_offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Key of a group's offset for a partition."""
    return _KEYS[OFFSET_COMMIT].write(group=group_id, topic=partition.topic, partition=partition.partition)


def decode_offset_key(data: bytes) -> tuple[str, TopicPartition]:
    """Group and partition of a key; raises ValueError."""
    key = _KEYS[number_of(data)].read(data)
    return key.group, TopicPartition(key.topic, key.partition)


def encode_offset(value: CommittedOffset) -> bytes:
    """Value of a committed offset; only version 1 has room for a time of its own to be forgotten."""
    schema = _NEWEST if value.expire_ms == NO_TIME else _EXPIRING
    return schema.pack(value._asdict())


def decode_offset(data: bytes) -> CommittedOffset:
    """Read a value of any version; raise ValueError."""
    value = _VALUES.read(data)
    return CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_ms, value.expire_ms, value.topic_id
    )
