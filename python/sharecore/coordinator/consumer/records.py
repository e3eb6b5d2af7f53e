"""Records of consumer groups in `__consumer_offsets` (KIP-848), keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from sharecore.coordinator_log.record_schema import RecordSchema, field
from sharecore.coordinator_log.topic_log import Record


class ConsumerRecord(IntEnum):
    """Types of records; the numbers are Kafka's."""

    METADATA = 3
    PARTITION_METADATA = 4
    MEMBER_METADATA = 5
    TARGET_METADATA = 6
    TARGET_MEMBER = 7
    CURRENT_MEMBER = 8
    REGULAR_EXPRESSION = 16


_GROUP = (field("group_id", "string"),)
_MEMBER = (*_GROUP, field("member_id", "string"))
_TOPIC = (field("topic_id", "uuid"), field("partitions", "int32", array=True))
_TOPIC_EPOCHS = (
    *_TOPIC,
    field("assignment_epochs", "int32", array=True, nullable=True, tag=0, default=None),
)
NO_CLASSIC_MEMBER = 0
"""Kafka writes the tagged field of a member that came by the classic protocol for other members too, as
null.
"""

_FIELDS = {
    ConsumerRecord.METADATA: (
        _GROUP,
        (field("epoch", "int32"), field("metadata_hash", "int64", tag=0)),
    ),
    ConsumerRecord.MEMBER_METADATA: (
        _MEMBER,
        (
            field("instance_id", "string", nullable=True),
            field("rack_id", "string", nullable=True),
            field("client_id", "string"),
            field("client_host", "string"),
            field("subscribed_topic_names", "string", array=True),
            field("subscribed_topic_regex", "string", nullable=True),
            field("rebalance_timeout_ms", "int32", default=-1),
            field("server_assignor", "string", nullable=True),
            field("classic_member", "int8", tag=0, default=1),
        ),
    ),
    ConsumerRecord.TARGET_METADATA: (
        _GROUP,
        (field("assignment_epoch", "int32"), field("assignment_timestamp", "int64", tag=0)),
    ),
    ConsumerRecord.TARGET_MEMBER: (_MEMBER, (field("topic_partitions", _TOPIC, array=True),)),
    ConsumerRecord.CURRENT_MEMBER: (
        _MEMBER,
        (
            field("member_epoch", "int32"),
            field("previous_member_epoch", "int32"),
            field("state", "int8"),
            field("assigned_partitions", _TOPIC_EPOCHS, array=True),
            field("partitions_pending_revocation", _TOPIC_EPOCHS, array=True),
        ),
    ),
}
IGNORED = (ConsumerRecord.PARTITION_METADATA, ConsumerRecord.REGULAR_EXPRESSION)
"""What the broker finds out by itself: numbers of partitions, and topics that match an expression."""

_KEYS = {
    kind: RecordSchema(f"ConsumerGroup{kind.name}Key", kind, *fields) for kind, (fields, _) in _FIELDS.items()
}
_VALUES = {
    kind: RecordSchema(f"ConsumerGroup{kind.name}Value", 0, *fields, flexible=True)
    for kind, (_, fields) in _FIELDS.items()
}


class ConsumerKey(NamedTuple):
    """What a record is about; `member_id` is empty where that is the whole group."""

    kind: ConsumerRecord
    group_id: str
    member_id: str


def consumer_record(
    kind: ConsumerRecord, group_id: str, value: Mapping[str, Any] | None, *, member_id: str = ""
) -> Record:
    """A record; without a value it erases."""
    key = _KEYS[kind].write(group_id=group_id, member_id=member_id)
    return key, None if value is None else _VALUES[kind].pack(value)


def decode_consumer_key(kind: int, data: bytes) -> ConsumerKey:
    """What a record is about; raises ValueError."""
    key = _KEYS[ConsumerRecord(kind)].read(data)
    return ConsumerKey(ConsumerRecord(kind), key.group_id, getattr(key, "member_id", ""))


def decode_consumer_value(kind: ConsumerRecord, data: bytes) -> Any:
    """Reads a value; raises ValueError."""
    return _VALUES[kind].read(data)
