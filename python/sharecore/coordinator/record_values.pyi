"""Types of the values of coordinator records as they are read, for type checkers only.

Written by `python -m tests.unit.protocol.message_types` from the schemas of the records. A class has the
fields of all versions.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

class ConsumerGroupMetadata(NamedTuple):
    epoch: int
    metadata_hash: int

class ConsumerGroupMemberMetadata(NamedTuple):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member: int

class ConsumerGroupTargetMetadata(NamedTuple):
    assignment_epoch: int
    assignment_timestamp: int

class ConsumerGroupTargetMemberTopicPartitions(NamedTuple):
    topic_id: UUID
    partitions: Sequence[int]

class ConsumerGroupTargetMember(NamedTuple):
    topic_partitions: Sequence[ConsumerGroupTargetMemberTopicPartitions]

class ConsumerGroupCurrentMemberAssignedPartitions(NamedTuple):
    topic_id: UUID
    partitions: Sequence[int]
    assignment_epochs: Sequence[int] | None

class ConsumerGroupCurrentMemberPartitionsPendingRevocation(NamedTuple):
    topic_id: UUID
    partitions: Sequence[int]
    assignment_epochs: Sequence[int] | None

class ConsumerGroupCurrentMember(NamedTuple):
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: Sequence[ConsumerGroupCurrentMemberAssignedPartitions]
    partitions_pending_revocation: Sequence[ConsumerGroupCurrentMemberPartitionsPendingRevocation]

class ConsumerGroupRegularExpression(NamedTuple):
    topics: Sequence[str]
    version: int
    timestamp: int

class ShareGroupMemberMetadata(NamedTuple):
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]

class ShareGroupMetadata(NamedTuple):
    epoch: int
    metadata_hash: int

class ShareGroupTargetAssignmentMetadata(NamedTuple):
    assignment_epoch: int
    assignment_timestamp: int

class ShareGroupTargetAssignmentMemberTopicPartitions(NamedTuple):
    topic_id: UUID
    partitions: Sequence[int]

class ShareGroupTargetAssignmentMember(NamedTuple):
    topic_partitions: Sequence[ShareGroupTargetAssignmentMemberTopicPartitions]

class ShareGroupCurrentMemberAssignmentAssignedPartitions(NamedTuple):
    topic_id: UUID
    partitions: Sequence[int]

class ShareGroupCurrentMemberAssignment(NamedTuple):
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: Sequence[ShareGroupCurrentMemberAssignmentAssignedPartitions]

class ShareGroupStatePartitionMetadataInitializingTopics(NamedTuple):
    topic_id: UUID
    topic_name: str
    partitions: Sequence[int]

class ShareGroupStatePartitionMetadataInitializedTopics(NamedTuple):
    topic_id: UUID
    topic_name: str
    partitions: Sequence[int]

class ShareGroupStatePartitionMetadataDeletingTopics(NamedTuple):
    topic_id: UUID
    topic_name: str

class ShareGroupStatePartitionMetadata(NamedTuple):
    initializing_topics: Sequence[ShareGroupStatePartitionMetadataInitializingTopics]
    initialized_topics: Sequence[ShareGroupStatePartitionMetadataInitializedTopics]
    deleting_topics: Sequence[ShareGroupStatePartitionMetadataDeletingTopics]

class GroupMetadataMembers(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes

class GroupMetadata(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_ms: int
    members: Sequence[GroupMetadataMembers]

class TransactionLogPartitions(NamedTuple):
    topic: str
    partition_ids: Sequence[int]

class TransactionLog(NamedTuple):
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    timeout_ms: int
    status: int
    partitions: Sequence[TransactionLogPartitions] | None
    update_ms: int
    start_ms: int
    client_version: int
