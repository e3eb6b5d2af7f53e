"""One share group: its members, its assignment and its share-partition state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.coordinator.memory_limit import size_of
from sharecore.coordinator.registry import GROUP_BYTES, MEMBER_BYTES, GroupType
from sharecore.coordinator.share.records import RECORDS, ShareRecord
from sharecore.coordinator.topics import TopicInfo
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.coordinator import record_values as values

Assignment = dict[UUID, tuple[int, ...]]
"""Ascending partitions by topic id."""

SHARE_PARTITION_BYTES = 550
"""Approximate memory size of a share partition: its state and its place in an assignment."""

EMPTY = "Empty"
STABLE = "Stable"
_MEMBER_STABLE = 0


@dataclass(slots=True)
class Member:
    """A member as it last reported itself, and its last answer."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Assignment = field(default_factory=dict)
    asked_epoch: int = 0
    """Group epoch at which it joined or last changed its subscription."""

    @property
    def reported(self) -> tuple[object, ...]:
        """All fields reported by the member."""
        return self.rack_id, self.client_id, self.client_host, self.subscribed


@dataclass(slots=True)
class TopicState:
    """A topic and its partitions whose state is in the same stage."""

    name: str
    partitions: set[int]


class ShareGroup:
    """State of a share group, as in its records.

    Attributes:
        type, protocol_type: as for all groups of the registry.
        epoch: increases with each change that requires a new assignment.
        assignment_epoch: the group epoch of the target assignment.
        assigned_at_ms: wall-clock time of the target assignment; 0 before the first.
        target: the target assignment by member id.
        initializing, initialized, deleting: topics whose share-partition state is being created, exists,
            is being deleted.
        has_topics_record: whether the log has a record of these topics, even if none is left.
        topics_seen: the topics version of `metadata_hash`.
        complete_at: the topics version at which all subscribed partitions had state.
        pending: whether partitions with state are missing in the target assignment; None if to be checked.
        is_weighted: whether topics had weights at the last heartbeat; None after a start.
        left_out: whether the target assignment lacks partitions that had no state yet.
        making_since_ms: monotonic start time of the pending state creation.
        deletions: topics with a pending state deletion.
        resigned: whether another broker coordinates the group, or this one has replayed it since; pending
            operations of this object then stop.
    """

    type = GroupType.SHARE
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assigned_at_ms = 0
        self.members: dict[str, Member] = {}
        self.target: dict[str, Assignment] = {}
        self.initializing: dict[UUID, TopicState] = {}
        self.initialized: dict[UUID, TopicState] = {}
        self.deleting: dict[UUID, str] = {}
        self.has_topics_record = False
        self.topics_seen = -1
        self.complete_at = -1
        self.pending: bool | None = None
        self.is_weighted: bool | None = None
        self.left_out = False
        self.making_since_ms: int | None = None
        self.deletions: set[UUID] = set()
        self.resigned = False

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def memory_bytes(self) -> int:
        """Approximate memory size of the group, its members and its share-partition state."""
        members = self.members.values()
        names = sum(len(each.member_id) + len(each.client_id) + size_of(each.subscribed) for each in members)
        states = (*self.initializing.values(), *self.initialized.values())
        partitions = sum(len(each.partitions) for each in states)
        own = GROUP_BYTES + len(self.group_id) + MEMBER_BYTES * len(members)
        return own + names + partitions * SHARE_PARTITION_BYTES

    def check_delete(self) -> None:
        """Raise KafkaError(NON_EMPTY_GROUP) unless the group may be deleted."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    @property
    def state_name(self) -> str:
        """EMPTY without members, else STABLE; an existing share group has no other state."""
        return STABLE if self.members else EMPTY

    @property
    def subscribed(self) -> set[str]:
        """Names of all subscribed topics."""
        return {name for member in self.members.values() for name in member.subscribed}

    @property
    def sources(self) -> set[str]:
        """Names of the topics that are subscribed or have state."""
        return self.subscribed | {state.name for state in self.initialized.values()}

    def add_initialized(self, topic: TopicInfo, partitions: Collection[int]) -> None:
        """Record that these partitions have state now."""
        self.initializing.pop(topic.topic_id, None)
        if partitions:
            state = self.initialized.setdefault(topic.topic_id, TopicState(topic.name, set()))
            state.partitions.update(partitions)
            self.pending = None

    # records

    def member_record(self, member: Member) -> Record:
        """Return the record of a member's reported fields."""
        return RECORDS.record(
            ShareRecord.MEMBER_METADATA,
            self.group_id,
            {
                "rack_id": member.rack_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "subscribed_topic_names": member.subscribed,
            },
            member_id=member.member_id,
        )

    def epoch_record(self) -> Record:
        """Return the record of the group epoch."""
        return RECORDS.record(
            ShareRecord.METADATA, self.group_id, {"epoch": self.epoch, "metadata_hash": self.metadata_hash}
        )

    def target_records(self, changed: Iterable[str]) -> list[Record]:
        """Return the records of changed target assignments and their epoch."""
        records = [
            RECORDS.record(
                ShareRecord.TARGET_ASSIGNMENT_MEMBER,
                self.group_id,
                {"topic_partitions": _as_fields(self.target.get(member_id, {}))},
                member_id=member_id,
            )
            for member_id in changed
        ]
        value = {"assignment_epoch": self.assignment_epoch, "assignment_timestamp": self.assigned_at_ms}
        records.append(RECORDS.record(ShareRecord.TARGET_ASSIGNMENT_METADATA, self.group_id, value))
        return records

    def current_record(self, member: Member) -> Record:
        """Return the record of a member's current assignment."""
        return RECORDS.record(
            ShareRecord.CURRENT_MEMBER_ASSIGNMENT,
            self.group_id,
            {
                "member_epoch": member.epoch,
                "previous_member_epoch": member.previous_epoch,
                "state": _MEMBER_STABLE,
                "assigned_partitions": _as_fields(member.assigned),
            },
            member_id=member.member_id,
        )

    def topics_record(self) -> Record:
        """Return the record of share partitions by the stage of their state."""
        self.has_topics_record = True
        return RECORDS.record(
            ShareRecord.STATE_PARTITION_METADATA,
            self.group_id,
            {
                "initializing_topics": _as_named_fields(self.initializing),
                "initialized_topics": _as_named_fields(self.initialized),
                "deleting_topics": [
                    {"topic_id": topic_id, "topic_name": name} for topic_id, name in self.deleting.items()
                ],
            },
        )

    def gone_records(self, member_id: str) -> list[Record]:
        """Return the tombstones of a member."""
        kinds = (
            ShareRecord.CURRENT_MEMBER_ASSIGNMENT,
            ShareRecord.TARGET_ASSIGNMENT_MEMBER,
            ShareRecord.MEMBER_METADATA,
        )
        return [RECORDS.record(kind, self.group_id, None, member_id=member_id) for kind in kinds]

    def deleted_records(self) -> list[Record]:
        """Return the tombstones of the group, which has no members."""
        kinds = (
            ShareRecord.TARGET_ASSIGNMENT_METADATA,
            ShareRecord.STATE_PARTITION_METADATA,
            ShareRecord.METADATA,
        )
        return [RECORDS.record(kind, self.group_id, None) for kind in kinds]

    def replay(self, kind: int, member_id: str, value: object) -> None:
        """Apply the content of a record; `value` is None for a tombstone."""
        _REPLAYS[kind](self, member_id, value)

    def _replay_metadata(self, _: str, value: values.ShareGroupMetadata | None) -> None:
        if value is not None:
            self.epoch = value.epoch
            self.metadata_hash = value.metadata_hash

    def _replay_member(self, member_id: str, value: values.ShareGroupMemberMetadata | None) -> None:
        if value is None:
            self.members.pop(member_id, None)
            self.target.pop(member_id, None)
            return
        member = self.members.setdefault(member_id, Member(member_id))
        member.rack_id, member.client_id, member.client_host = (
            value.rack_id,
            value.client_id,
            value.client_host,
        )
        member.subscribed = tuple(value.subscribed_topic_names)

    def _replay_target_metadata(
        self, _: str, value: values.ShareGroupTargetAssignmentMetadata | None
    ) -> None:
        if value is not None:
            self.assignment_epoch = value.assignment_epoch
            self.assigned_at_ms = value.assignment_timestamp or 0

    def _replay_target_member(
        self, member_id: str, value: values.ShareGroupTargetAssignmentMember | None
    ) -> None:
        if value is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = _from_fields(value.topic_partitions)

    def _replay_current(self, member_id: str, value: values.ShareGroupCurrentMemberAssignment | None) -> None:
        if value is None:
            if member_id in self.members:
                self.members[member_id].assigned = {}
            return
        member = self.members.setdefault(member_id, Member(member_id))
        member.epoch, member.previous_epoch = value.member_epoch, value.previous_member_epoch
        member.assigned = _from_fields(value.assigned_partitions)

    def _replay_topics(self, _: str, value: values.ShareGroupStatePartitionMetadata | None) -> None:
        self.has_topics_record = value is not None
        self.initializing = {} if value is None else _from_named_fields(value.initializing_topics)
        self.initialized = {} if value is None else _from_named_fields(value.initialized_topics)
        self.deleting = (
            {} if value is None else {topic.topic_id: topic.topic_name for topic in value.deleting_topics}
        )


_REPLAYS: Mapping[int, Callable[..., None]] = {
    ShareRecord.METADATA: ShareGroup._replay_metadata,
    ShareRecord.MEMBER_METADATA: ShareGroup._replay_member,
    ShareRecord.TARGET_ASSIGNMENT_METADATA: ShareGroup._replay_target_metadata,
    ShareRecord.TARGET_ASSIGNMENT_MEMBER: ShareGroup._replay_target_member,
    ShareRecord.CURRENT_MEMBER_ASSIGNMENT: ShareGroup._replay_current,
    ShareRecord.STATE_PARTITION_METADATA: ShareGroup._replay_topics,
}


def _as_fields(assignment: Assignment) -> list[dict[str, object]]:
    return [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in assignment.items()]


def _from_fields(
    items: Iterable[
        values.ShareGroupTargetAssignmentMemberTopicPartitions
        | values.ShareGroupCurrentMemberAssignmentAssignedPartitions
    ],
) -> Assignment:
    return {item.topic_id: tuple(item.partitions) for item in items}


def _as_named_fields(topics: Mapping[UUID, TopicState]) -> list[dict[str, object]]:
    return [
        {"topic_id": topic_id, "topic_name": topic.name, "partitions": sorted(topic.partitions)}
        for topic_id, topic in topics.items()
    ]


def _from_named_fields(
    items: Iterable[
        values.ShareGroupStatePartitionMetadataInitializingTopics
        | values.ShareGroupStatePartitionMetadataInitializedTopics
    ],
) -> dict[UUID, TopicState]:
    return {item.topic_id: TopicState(item.topic_name, set(item.partitions)) for item in items}
