"""Records of consumer groups in `__consumer_offsets` (KIP-848), keys and values."""

from __future__ import annotations

from enum import IntEnum

from sharecore.coordinator.group_records import GROUP, MEMBER, PARTITIONS, GroupRecords
from sharecore.coordinator_log.record_schema import field


class ConsumerRecord(IntEnum):
    """Record types; the numbers are Kafka's."""

    METADATA = 3
    PARTITION_METADATA = 4
    MEMBER_METADATA = 5
    TARGET_METADATA = 6
    TARGET_MEMBER = 7
    CURRENT_MEMBER = 8
    REGULAR_EXPRESSION = 16


_TOPIC_EPOCHS = (
    *PARTITIONS,
    field("assignment_epochs", "int32", array=True, nullable=True, tag=0, default=None),
)
NO_CLASSIC_MEMBER = 0
"""Kafka writes the tagged field for classic members as null for other members."""

_FIELDS = {
    ConsumerRecord.METADATA: (
        GROUP,
        (field("epoch", "int32"), field("metadata_hash", "int64", tag=0)),
    ),
    ConsumerRecord.MEMBER_METADATA: (
        MEMBER,
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
        GROUP,
        (field("assignment_epoch", "int32"), field("assignment_timestamp", "int64", tag=0)),
    ),
    ConsumerRecord.TARGET_MEMBER: (MEMBER, (field("topic_partitions", PARTITIONS, array=True),)),
    ConsumerRecord.CURRENT_MEMBER: (
        MEMBER,
        (
            field("member_epoch", "int32"),
            field("previous_member_epoch", "int32"),
            field("state", "int8"),
            field("assigned_partitions", _TOPIC_EPOCHS, array=True),
            field("partitions_pending_revocation", _TOPIC_EPOCHS, array=True),
        ),
    ),
    ConsumerRecord.REGULAR_EXPRESSION: (
        (*GROUP, field("regular_expression", "string")),
        (
            field("topics", "string", array=True),
            field("version", "int64"),
            field("timestamp", "int64"),
        ),
    ),
}
IGNORED = (ConsumerRecord.PARTITION_METADATA,)
"""Records of facts that the broker determines itself: partition counts."""
RECORDS = GroupRecords("ConsumerGroup", _FIELDS, ConsumerRecord.METADATA)
