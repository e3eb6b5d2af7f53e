"""Records of share groups in `__consumer_offsets` (types 10 to 15), keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from sharecore.coordinator_log.record_schema import RecordSchema, field
from sharecore.coordinator_log.topic_log import Record

_VERSION = 0


class ShareRecord(IntEnum):
    """Types of share-group records."""

    MEMBER_METADATA = 10
    METADATA = 11
    TARGET_ASSIGNMENT_METADATA = 12
    TARGET_ASSIGNMENT_MEMBER = 13
    CURRENT_MEMBER_ASSIGNMENT = 14
    STATE_PARTITION_METADATA = 15


_GROUP = (field("group_id", "string"),)
_MEMBER = (*_GROUP, field("member_id", "string"))
_PARTITIONS = (field("topic_id", "uuid"), field("partitions", "int32", array=True))
_NAMED_TOPIC = (field("topic_id", "uuid"), field("topic_name", "string"))
_NAMED_PARTITIONS = (*_NAMED_TOPIC, field("partitions", "int32", array=True))

_FIELDS = {
    ShareRecord.MEMBER_METADATA: (
        _MEMBER,
        (
            field("rack_id", "string", nullable=True),
            field("client_id", "string"),
            field("client_host", "string"),
            field("subscribed_topic_names", "string", array=True),
        ),
    ),
    ShareRecord.METADATA: (_GROUP, (field("epoch", "int32"), field("metadata_hash", "int64"))),
    ShareRecord.TARGET_ASSIGNMENT_METADATA: (
        _GROUP,
        (field("assignment_epoch", "int32"), field("assignment_timestamp", "int64", tag=0)),
    ),
    ShareRecord.TARGET_ASSIGNMENT_MEMBER: (_MEMBER, (field("topic_partitions", _PARTITIONS, array=True),)),
    ShareRecord.CURRENT_MEMBER_ASSIGNMENT: (
        _MEMBER,
        (
            field("member_epoch", "int32"),
            field("previous_member_epoch", "int32"),
            field("state", "int8"),
            field("assigned_partitions", _PARTITIONS, array=True),
        ),
    ),
    ShareRecord.STATE_PARTITION_METADATA: (
        _GROUP,
        (
            field("initializing_topics", _NAMED_PARTITIONS, array=True),
            field("initialized_topics", _NAMED_PARTITIONS, array=True),
            field("deleting_topics", _NAMED_TOPIC, array=True),
        ),
    ),
}
_KEYS = {
    kind: RecordSchema(f"ShareGroup{kind.name}Key", kind, *fields) for kind, (fields, _) in _FIELDS.items()
}
_VALUES = {
    kind: RecordSchema(f"ShareGroup{kind.name}Value", _VERSION, *fields, flexible=True)
    for kind, (_, fields) in _FIELDS.items()
}


class ShareKey(NamedTuple):
    """What a record is about; `member_id` is empty where that is the whole group."""

    kind: ShareRecord
    group_id: str
    member_id: str


def share_record(
    kind: ShareRecord, group_id: str, value: Mapping[str, Any] | None, *, member_id: str = ""
) -> Record:
    """A record; without a value, the one that erases it."""
    key = _KEYS[kind].write(group_id=group_id, member_id=member_id)
    return key, None if value is None else _VALUES[kind].pack(value)


def decode_share_key(kind: int, data: bytes) -> ShareKey:
    """Reads a key of one of these kinds; raises ValueError."""
    record = ShareRecord(kind)
    key = _KEYS[record].read(data)
    return ShareKey(record, key.group_id, getattr(key, "member_id", ""))


def decode_share_value(kind: ShareRecord, data: bytes) -> Any:
    """A value as a named tuple with the schema's names; raises ValueError."""
    return _VALUES[kind].read(data)
