"""Records of share groups in `__consumer_offsets` (types 10 to 15), keys and values."""

from __future__ import annotations

from enum import IntEnum

from sharecore.coordinator.group_records import GROUP, MEMBER, PARTITIONS, GroupRecords
from sharecore.coordinator_log.record_schema import field


class ShareRecord(IntEnum):
    """Types of share-group records."""

    MEMBER_METADATA = 10
    METADATA = 11
    TARGET_ASSIGNMENT_METADATA = 12
    TARGET_ASSIGNMENT_MEMBER = 13
    CURRENT_MEMBER_ASSIGNMENT = 14
    STATE_PARTITION_METADATA = 15


_NAMED_TOPIC = (field("topic_id", "uuid"), field("topic_name", "string"))
_NAMED_PARTITIONS = (*_NAMED_TOPIC, field("partitions", "int32", array=True))

_FIELDS = {
    ShareRecord.MEMBER_METADATA: (
        MEMBER,
        (
            field("rack_id", "string", nullable=True),
            field("client_id", "string"),
            field("client_host", "string"),
            field("subscribed_topic_names", "string", array=True),
        ),
    ),
    ShareRecord.METADATA: (GROUP, (field("epoch", "int32"), field("metadata_hash", "int64"))),
    ShareRecord.TARGET_ASSIGNMENT_METADATA: (
        GROUP,
        (field("assignment_epoch", "int32"), field("assignment_timestamp", "int64", tag=0)),
    ),
    ShareRecord.TARGET_ASSIGNMENT_MEMBER: (MEMBER, (field("topic_partitions", PARTITIONS, array=True),)),
    ShareRecord.CURRENT_MEMBER_ASSIGNMENT: (
        MEMBER,
        (
            field("member_epoch", "int32"),
            field("previous_member_epoch", "int32"),
            field("state", "int8"),
            field("assigned_partitions", PARTITIONS, array=True),
        ),
    ),
    ShareRecord.STATE_PARTITION_METADATA: (
        GROUP,
        (
            field("initializing_topics", _NAMED_PARTITIONS, array=True),
            field("initialized_topics", _NAMED_PARTITIONS, array=True),
            field("deleting_topics", _NAMED_TOPIC, array=True),
        ),
    ),
}
RECORDS = GroupRecords("ShareGroup", _FIELDS, ShareRecord.METADATA)
