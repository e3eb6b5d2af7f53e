"""One consumer group: its members, epochs and target assignment (KIP-848)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sharecore.coordinator.consumer.member import Assignment, ConsumerMember, MemberState, Partition
from sharecore.coordinator.consumer.records import (
    NO_CLASSIC_MEMBER,
    RECORDS,
    ConsumerRecord,
)
from sharecore.coordinator.offset_records import Commits, CommittedOffset, TopicPartition
from sharecore.coordinator.registry import GROUP_BYTES, MEMBER_BYTES, PARTITION_BYTES, GroupType
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.coordinator import record_values as values

_EXPRESSION_BYTES = 1 << 16
"""Size charged for an expression: it may match thousands of topics, and matching costs time."""
LEFT_STATIC_EPOCH = -2
"""Epoch of a static member that left temporarily."""


class LookUp(NamedTuple):
    """Time at which expressions were matched.

    Args:
        created: number of topics created by then.
        at_ms: monotonic time.
        time_ms: wall-clock time, as in records.
    """

    created: int = 0
    at_ms: int = 0
    time_ms: int = 0


class ConsumerGroup:
    """State of a consumer group, as in its records.

    Attributes:
        epoch: increases with each change that requires a new assignment.
        target: partitions by member id, computed for `target_epoch`.
        holders: the owner of each partition that is assigned or being revoked.
        expressions: the last matches of the members' expressions.
        looked_up: the time of that match; None if before the broker started.
    """

    type = GroupType.CONSUMER
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.target_epoch = 1
        self.target_ms = 0
        self.target: dict[str, Assignment] = {}
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}
        self.holders: dict[Partition, str] = {}
        self.assigned_at_ms: int | None = None
        self.topics_version = -1
        self.topics: dict[str, tuple[UUID, int]] = {}
        self.expressions: dict[str, frozenset[str]] = {}
        self.is_looking = False
        self.looked_up: LookUp | None = None

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def memory_bytes(self) -> int:
        members = self.members.values()
        names = sum(len(each.member_id) + len(each.client_id) + each.names_bytes for each in members)
        partitions = sum(len(each.assigned) + len(each.revoking) for each in members)
        matched = sum(len(topics) for topics in self.expressions.values())
        own = GROUP_BYTES + len(self.group_id) + MEMBER_BYTES * len(members)
        return own + names + (partitions + matched) * PARTITION_BYTES

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        settled = all(
            member.state is MemberState.STABLE and member.epoch == self.target_epoch
            for member in self.members.values()
        )
        return "Stable" if settled else "Reconciling"

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        commits: Commits,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        """Check that a commit comes from a current member, or targets an empty group.

        A member with an older epoch passes if it has owned all of the partitions since then (KIP-1251).

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH; UNSUPPORTED_VERSION for a client without
                member epochs.
        """
        is_producers_alone = transactional and not member_id and instance_id is None
        if generation < 0 and (not self.members or is_producers_alone):
            return
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of the group.")
        if api_version < 9:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if generation == member.epoch:
            return
        given = [self._given(member, partition, commit) for partition, commit in commits.items()]
        if generation > member.epoch or any(epoch is None or epoch > generation for epoch in given):
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    def _given(
        self, member: ConsumerMember, partition: TopicPartition, commit: CommittedOffset
    ) -> int | None:
        """Return the epoch in which a member was assigned a partition that it owns or must revoke."""
        topic_id = commit.topic_id
        if topic_id is None and partition.topic in self.topics:
            topic_id, _ = self.topics[partition.topic]
        if topic_id is None:
            return None
        each = topic_id, partition.partition
        return member.assigned.get(each, member.revoking.get(each))

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError (UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH) for a caller that falsely claims
        membership.
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_offset_delete(self) -> None:
        """Allow deletion; offsets of topics without subscribers may always be deleted."""

    def check_delete(self) -> None:
        """Raise KafkaError (NON_EMPTY_GROUP) unless the group may be deleted."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def unused_since_ms(self) -> int | None:
        """Return None: offsets expire by their commit times."""
        return None

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that members consume, whether they exist or not."""
        return set().union(*map(self.subscribed, self.members.values()))

    def is_subscribed(self, topic: str) -> bool:
        """Return whether members consume a topic."""
        return any(topic in self.subscribed(member) for member in self.members.values())

    def add(self, member: ConsumerMember) -> None:
        """Add a member."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member: ConsumerMember) -> None:
        """Remove a member and free its partitions."""
        del self.members[member.member_id]
        self.target.pop(member.member_id, None)
        self.release(member)
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        member.cancel_timers()

    def release(self, member: ConsumerMember) -> None:
        """Forget the partitions that a member holds."""
        for each in member.noted:
            if self.holders.get(each) == member.member_id:
                del self.holders[each]
        member.noted = frozenset()

    def hold(self, member: ConsumerMember) -> None:
        """Store the partitions that a member holds now."""
        self.release(member)
        member.noted = frozenset(member.held)
        self.holders.update(dict.fromkeys(member.noted, member.member_id))

    def is_free(self, member: ConsumerMember, partition: Partition) -> bool:
        """Return whether no other member holds a partition."""
        return self.holders.get(partition, member.member_id) == member.member_id

    def subscribed(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics of a member's subscription, including known matches of its expression."""
        return member.subscribed_names.union(self.expressions.get(member.subscribed_regex or "", ()))

    def bytes_without(self, member_id: str, expression: str | None) -> int:
        """Return the approximate subscription size of the other members, plus all expressions."""
        others = [each for each in self.members.values() if each.member_id != member_id]
        size = sum(each.names_bytes for each in others)
        if expression:
            known = {each.subscribed_regex for each in others if each.subscribed_regex}
            size += _EXPRESSION_BYTES * len(known | {expression})
        return size

    def subscribed_expressions(self) -> set[str]:
        """Return the expressions of all members."""
        return {each.subscribed_regex for each in self.members.values() if each.subscribed_regex}

    def forget_expressions(self) -> list[Record]:
        """Forget the matches of unused expressions; return their tombstones."""
        if not self.expressions:
            return []
        gone = self.expressions.keys() - self.subscribed_expressions()
        for each in gone:
            del self.expressions[each]
        return [self.expression_record(each) for each in sorted(gone)]

    def assignor(self, default: str) -> str:
        """Return the assignor requested by most members."""
        votes = Counter(
            each.server_assignor for each in self.members.values() if each.server_assignor is not None
        )
        return max(votes, key=lambda name: (votes[name], name)) if votes else default

    # records

    def epoch_record(self) -> Record:
        """Return the record of the group epoch."""
        value = {"epoch": self.epoch, "metadata_hash": self.metadata_hash}
        return RECORDS.record(ConsumerRecord.METADATA, self.group_id, value)

    def member_record(self, member: ConsumerMember) -> Record:
        """Return the record of a member's reported fields."""
        return RECORDS.record(
            ConsumerRecord.MEMBER_METADATA,
            self.group_id,
            {
                "instance_id": member.instance_id,
                "rack_id": member.rack_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "subscribed_topic_names": sorted(member.subscribed_names),
                "subscribed_topic_regex": member.subscribed_regex,
                "rebalance_timeout_ms": member.rebalance_timeout_ms,
                "server_assignor": member.server_assignor,
                "classic_member": NO_CLASSIC_MEMBER,
            },
            member_id=member.member_id,
        )

    def target_records(self, changed: Iterable[str]) -> list[Record]:
        """Return the records of changed target assignments and their epoch."""
        records = [
            RECORDS.record(
                ConsumerRecord.TARGET_MEMBER,
                self.group_id,
                {"topic_partitions": _as_fields(self.target.get(member_id, {}))},
                member_id=member_id,
            )
            for member_id in changed
        ]
        value = {"assignment_epoch": self.target_epoch, "assignment_timestamp": self.target_ms}
        return [*records, RECORDS.record(ConsumerRecord.TARGET_METADATA, self.group_id, value)]

    def current_record(self, member: ConsumerMember) -> Record:
        """Return the record of a member's current assignment."""
        return RECORDS.record(
            ConsumerRecord.CURRENT_MEMBER,
            self.group_id,
            {
                "member_epoch": member.epoch,
                "previous_member_epoch": member.previous_epoch,
                "state": member.state,
                "assigned_partitions": _with_epochs(member.assigned),
                "partitions_pending_revocation": _with_epochs(member.revoking),
            },
            member_id=member.member_id,
        )

    def expression_record(self, expression: str) -> Record:
        """Return the record of an expression's matches; a tombstone if it is unused."""
        topics, when = self.expressions.get(expression), self.looked_up or LookUp()
        value = None
        if topics is not None:
            value = {"topics": sorted(topics), "version": when.created, "timestamp": when.time_ms}
        kind = ConsumerRecord.REGULAR_EXPRESSION
        return RECORDS.record(kind, self.group_id, value, regular_expression=expression)

    def gone_records(self, member_id: str) -> list[Record]:
        """Return the tombstones of a member."""
        kinds = (ConsumerRecord.CURRENT_MEMBER, ConsumerRecord.TARGET_MEMBER, ConsumerRecord.MEMBER_METADATA)
        return [RECORDS.record(kind, self.group_id, None, member_id=member_id) for kind in kinds]

    def deleted_records(self) -> list[Record]:
        """Return the tombstones of the group, which has no members."""
        kinds = (ConsumerRecord.TARGET_METADATA, ConsumerRecord.METADATA)
        return [RECORDS.record(kind, self.group_id, None) for kind in kinds]

    def replay(self, kind: int, about: str, value: object) -> None:
        """Apply the content of a record; `value` is None for a tombstone.

        Args:
            about: the record's member or expression.
        """
        _REPLAYS[kind](self, about, value)

    def _replay_epoch(self, _: str, value: values.ConsumerGroupMetadata | None) -> None:
        if value is not None:
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _replay_member(self, member_id: str, value: values.ConsumerGroupMemberMetadata | None) -> None:
        if value is None:
            member = self.members.get(member_id)
            if member is not None:
                self.remove(member)
            return
        member = self.members.get(member_id) or ConsumerMember(member_id)
        member.instance_id = value.instance_id
        member.rack_id = value.rack_id
        member.client_id = value.client_id
        member.client_host = value.client_host
        member.subscribe(value.subscribed_topic_names)
        member.subscribed_regex = value.subscribed_topic_regex
        member.rebalance_timeout_ms = value.rebalance_timeout_ms
        member.server_assignor = value.server_assignor
        self.add(member)

    def _replay_target_epoch(self, _: str, value: values.ConsumerGroupTargetMetadata | None) -> None:
        if value is not None:
            self.target_epoch, self.target_ms = value.assignment_epoch, value.assignment_timestamp

    def _replay_target(self, member_id: str, value: values.ConsumerGroupTargetMember | None) -> None:
        if value is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = {
                each.topic_id: frozenset(each.partitions) for each in value.topic_partitions
            }

    def _replay_current(self, member_id: str, value: values.ConsumerGroupCurrentMember | None) -> None:
        member = self.members.get(member_id)
        if member is None:
            if value is None:
                return
            member = ConsumerMember(member_id)
            self.add(member)
        if value is None:
            member.assigned, member.revoking = {}, {}
        else:
            member.epoch, member.previous_epoch = value.member_epoch, value.previous_member_epoch
            member.state = MemberState(value.state)
            member.assigned = _from_fields(value.assigned_partitions, value.member_epoch)
            member.revoking = _from_fields(value.partitions_pending_revocation, value.member_epoch)
        self.hold(member)

    def _replay_expression(
        self, expression: str, value: values.ConsumerGroupRegularExpression | None
    ) -> None:
        if value is None:
            self.expressions.pop(expression, None)
        else:
            self.expressions[expression] = frozenset(value.topics)


_REPLAYS: Mapping[int, Callable[..., None]] = {
    ConsumerRecord.METADATA: ConsumerGroup._replay_epoch,
    ConsumerRecord.MEMBER_METADATA: ConsumerGroup._replay_member,
    ConsumerRecord.TARGET_METADATA: ConsumerGroup._replay_target_epoch,
    ConsumerRecord.TARGET_MEMBER: ConsumerGroup._replay_target,
    ConsumerRecord.CURRENT_MEMBER: ConsumerGroup._replay_current,
    ConsumerRecord.REGULAR_EXPRESSION: ConsumerGroup._replay_expression,
}


def by_topic(partitions: Collection[Partition]) -> dict[UUID, list[int]]:
    """Return partitions by topic, ascending."""
    topics: dict[UUID, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _as_fields(assignment: Assignment) -> list[dict[str, object]]:
    return [{"topic_id": topic, "partitions": sorted(some)} for topic, some in assignment.items()]


def _with_epochs(partitions: Mapping[Partition, int]) -> list[dict[str, object]]:
    return [
        {
            "topic_id": topic,
            "partitions": some,
            "assignment_epochs": [partitions[topic, partition] for partition in some],
        }
        for topic, some in by_topic(partitions.keys()).items()
    ]


def _from_fields(
    topics: Iterable[
        values.ConsumerGroupCurrentMemberAssignedPartitions
        | values.ConsumerGroupCurrentMemberPartitionsPendingRevocation
    ],
    epoch: int,
) -> dict[Partition, int]:
    return {
        (each.topic_id, partition): assigned
        for each in topics
        for partition, assigned in zip(
            each.partitions, each.assignment_epochs or [epoch] * len(each.partitions), strict=True
        )
    }
