"""Who may commit, read and delete a group's offsets, and when the broker forgets them by itself."""

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
"""Of the records that a group of any type lives and dies with."""


@runtime_checkable
class CommittingGroup(Group, Protocol):
    """A group whose members commit offsets: every type but share groups."""

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
        """Raise KafkaError unless the commit comes from a present member, or from outside of an empty
        group.
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError for a caller that claims to be a member and is not."""

    def check_offset_delete(self) -> None:
        """Raise KafkaError when offsets of the group may not be deleted."""

    def unused_since_ms(self) -> int | None:
        """Since when nobody has consumed as a member; None for a group where commits alone tell."""

    def subscribed_topics(self) -> set[str] | None:
        """Topics that members consume; None when that is not known."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether offsets of a topic may be in use."""


class CommitRequest(NamedTuple):
    """Offsets from a member, from a consumer that chooses its partitions itself, or in a transaction.

    Args:
        generation: generation or member epoch; negative from outside of the group.
        producer: whose transaction it is part of.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    api_version: int
    commits: Commits
    producer: Producer | None = None


class OffsetCommits:
    """Commits, reads and deletes offsets on behalf of clients.

    Args:
        records: `__consumer_offsets`.
        classic: makes the groups for offsets of consumers that belong to no group.
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
        """Groups made for commits of which none is durable yet."""
        records.register(self)

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        """A group that is erased needs nothing of what was committed to it before."""
        if value is None:
            self._offsets.replayed.discard(_KEYS[kind].read(key).group_id)

    def resign(self, partition: int) -> None:
        """Groups are forgotten by those who keep them."""

    def start(self) -> None:
        """Make the groups of which nothing but offsets was read. One that has none left, or none that count,
        is there until it is forgotten as unused.
        """
        replayed, self._offsets.replayed = self._offsets.replayed, set()
        for group_id in sorted(replayed):
            if self._registry.get(group_id) is None:
                self._classic.create(group_id)

    def commit(self, request: CommitRequest, done: Done) -> None:
        """Write offsets; `done` is called when they are durable.

        Raises:
            KafkaError: the commit is none of this generation; see `CommittingGroup.check_commit`.
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
            self._registry.take_room(request.group_id, 0)
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
        """Make the group that was deleted while its offsets were on their way."""
        if self._registry.get(group_id) is None and self._offsets.has_any(group_id):
            self._classic.create(group_id)

    def _forget_new(self, group_id: str) -> None:
        """A commit was not written: without it there is no group where it would have made one."""
        group = self._registry.get(group_id)
        if group_id in self._new and not self._offsets.has_any(group_id):
            self._new.discard(group_id)
            if isinstance(group, ClassicGroup) and group.is_simple:
                self._registry.remove(group)

    def fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> Commits:
        """Every offset of a group; none for a group that is not there.

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
        """Whether an open transaction may change the offset (UNSTABLE_OFFSET_COMMIT)."""
        return self._offsets.is_pending(group_id, partition)

    def in_use(self, group_id: str, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Partitions whose offsets may not be deleted, since members consume them
        (GROUP_SUBSCRIBED_TO_TOPIC).

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
        """Delete offsets that are not `in_use`; where there is none, there is nothing to do."""
        known = self._offsets.get(group_id)
        found = [each for each in partitions if each in known or self._offsets.is_pending(group_id, each)]
        self._offsets.delete(group_id, sorted(found), done)

    def expire(self) -> list[CommittingGroup]:
        """Delete offsets that have expired; return the groups that have nothing left."""
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
        """Forgets every group's offsets for a topic that is gone."""
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
        # what could not be written now is found again the next time
        self._offsets.delete(group_id, partitions, lambda error: None)

    def _committing(self, group: Group) -> CommittingGroup:
        if not isinstance(group, CommittingGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")
        return group
