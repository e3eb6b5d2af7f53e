"""Access to a group's committed offsets, and their expiration."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from sharecore.clock import Clock
from sharecore.coordinator.classic import ClassicCoordinator, ClassicGroup
from sharecore.coordinator.classic.records import GROUP_METADATA
from sharecore.coordinator.consumer.records import ConsumerRecord
from sharecore.coordinator.group_records import GROUP
from sharecore.coordinator.offset_records import Commits, TopicPartition
from sharecore.coordinator.offsets import Offsets
from sharecore.coordinator.registry import Group, GroupRegistry
from sharecore.coordinator.share.records import ShareRecord
from sharecore.coordinator_log.record_schema import RecordSchema
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Producer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Done

_KEYS = {
    int(kind): RecordSchema("GroupKey", kind, *GROUP)
    for kind in (GROUP_METADATA, ConsumerRecord.METADATA, ShareRecord.METADATA)
}
"""Group records of every group type: a tombstone deletes the group's offsets too."""


@runtime_checkable
class CommittingGroup(Group, Protocol):
    """A group whose members commit offsets: every type except share groups."""

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
        """Raise KafkaError unless a commit comes from a current member, or targets an empty group."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError for a caller that falsely claims membership."""

    def check_offset_delete(self) -> None:
        """Raise KafkaError if offsets of the group may not be deleted."""

    def unused_since_ms(self) -> int | None:
        """Return when the last member left; None to expire offsets by their commit times."""

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that members consume; None if unknown."""

    def is_subscribed(self, topic: str) -> bool:
        """Return whether offsets of a topic may be in use."""


class CommitRequest(NamedTuple):
    """Offsets committed by a member, by a consumer with manual assignment, or in a transaction.

    Args:
        generation: generation or member epoch; negative for a caller that is not a member.
        producer: the producer of the transaction, if any.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    api_version: int
    commits: Commits
    producer: Producer | None = None


class OffsetCommits:
    """Commit, fetch and delete offsets for clients.

    Args:
        records: `__consumer_offsets`.
        classic: creates groups for offsets of consumers without membership.
        retention_ms: `offsets.retention.minutes`.
    """

    kinds: Collection[int] = tuple(_KEYS)

    def __init__(
        self,
        registry: GroupRegistry,
        records: CoordinatorRuntime,
        offsets: Offsets,
        classic: ClassicCoordinator,
        clock: Clock,
        *,
        retention_ms: int,
    ) -> None:
        self._registry = registry
        self._records = records
        self._offsets = offsets
        self._classic = classic
        self._clock = clock
        self._retention_ms = retention_ms
        self._new: set[str] = set()
        """Groups created for commits of which none is durable yet."""
        records.register(self)

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        """Drop the replayed offsets of a deleted group."""
        if value is None:
            self._offsets.replayed.discard(_KEYS[kind].read(key).group_id)

    def resign(self, partition: int) -> None:
        """Do nothing: the group coordinators discard their groups."""

    def start(self) -> None:
        """Create the groups for which only offsets were replayed; empty ones expire later."""
        replayed, self._offsets.replayed = self._offsets.replayed, set()
        for group_id in sorted(replayed):
            if self._registry.get(group_id) is None:
                self._classic.create(group_id)

    def commit(self, request: CommitRequest, done: Done) -> None:
        """Commit offsets; `done` is called when they are durable.

        Raises:
            KafkaError: the commit is not of the current generation; see `CommittingGroup.check_commit`.
        """
        self._records.check(request.group_id)
        group = self._registry.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                code = (
                    ErrorCode.GROUP_ID_NOT_FOUND if request.api_version >= 9 else ErrorCode.ILLEGAL_GENERATION
                )
                raise KafkaError(code, f"Group {request.group_id} not found.")
            if not request.commits:
                done(None)
                return
            self._registry.reserve_memory(request.group_id, 0)
            group = self._classic.create(request.group_id)
            self._new.add(request.group_id)
        self._committing(group).check_commit(
            request.member_id,
            request.instance_id,
            request.generation,
            request.commits,
            transactional=request.producer is not None,
            api_version=request.api_version,
        )
        if not request.commits:
            done(None)
            return
        group_id = request.group_id

        def committed(error: KafkaError | None) -> None:
            if error is None:
                self._new.discard(group_id)
                self._ensure_group(group_id)
            else:
                self._forget_new(group_id)
            done(error)

        try:
            self._offsets.commit(group_id, request.commits, committed, producer=request.producer)
        except KafkaError:
            self._forget_new(group_id)
            raise

    def _ensure_group(self, group_id: str) -> None:
        """Create a group again that was deleted while its offsets were being written."""
        if self._registry.get(group_id) is None and self._offsets.has_any(group_id):
            self._classic.create(group_id)

    def _forget_new(self, group_id: str) -> None:
        """Delete a group created for a commit that failed."""
        group = self._registry.get(group_id)
        if group_id in self._new and not self._offsets.has_any(group_id):
            self._new.discard(group_id)
            if isinstance(group, ClassicGroup) and group.is_simple:
                self._registry.remove(group)

    def fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> Commits:
        """Return all offsets of a group; empty if the group does not exist.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """
        self._records.check(group_id)
        group = self._registry.get(group_id)
        if not isinstance(group, CommittingGroup):
            return {}
        group.check_fetch(member_id, member_epoch)
        return self._offsets.get(group_id)

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether an open transaction may change the offset (UNSTABLE_OFFSET_COMMIT)."""
        return self._offsets.is_pending(group_id, partition)

    def in_use(self, group_id: str, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Return partitions whose offsets may not be deleted because members consume them.

        Raises:
            KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self._registry.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        committing = self._committing(group)
        committing.check_offset_delete()
        return {each for each in partitions if committing.is_subscribed(each.topic)}

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Delete offsets that are not `in_use`; missing offsets are ignored."""
        known = self._offsets.get(group_id)
        found = [each for each in partitions if each in known or self._offsets.is_pending(group_id, each)]
        self._offsets.delete(group_id, sorted(found), done)

    def expire(self) -> list[CommittingGroup]:
        """Delete expired offsets; return the groups that have none left."""
        now_ms = self._clock.now_ms()
        left = []
        for group in self._registry:
            if not isinstance(group, CommittingGroup):
                continue
            subscribed = group.subscribed_topics()
            if subscribed is None:
                continue
            self._forget(group.group_id, self._expired(group, now_ms, subscribed))
            if group.is_empty and not self._offsets.has_any(group.group_id):
                left.append(group)
        return left

    def topic_deleted(self, topic: str) -> None:
        """Delete every group's offsets of a deleted topic."""
        for group_id, partitions in self._offsets.of_topic(topic).items():
            self._forget(group_id, partitions)

    def _expired(
        self, group: CommittingGroup, now_ms: int, subscribed: Collection[str]
    ) -> list[TopicPartition]:
        return self._offsets.expired(
            group.group_id,
            now_ms=now_ms,
            retention_ms=self._retention_ms,
            since_ms=group.unused_since_ms(),
            subscribed=subscribed,
        )

    def _forget(self, group_id: str, partitions: list[TopicPartition]) -> None:
        # a failed delete is retried by the next expiration
        self._offsets.delete(group_id, partitions, lambda error: None)

    def _committing(self, group: Group) -> CommittingGroup:
        if not isinstance(group, CommittingGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")
        return group
