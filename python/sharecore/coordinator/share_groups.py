"""The coordinator of share groups: members, their assignment, and the life of the share-partition state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.coordinator.assignor import AssignorMember, assign
from sharecore.coordinator.metadata_hash import metadata_hash
from sharecore.coordinator.record_log import Done, Record, RecordLog
from sharecore.coordinator.registry import GroupRegistry
from sharecore.coordinator.share_group import Assignment, Member, ShareGroup
from sharecore.coordinator.share_records import ShareRecord, decode_share_key, decode_share_value
from sharecore.coordinator.share_topic_state import ShareTopicStates
from sharecore.coordinator.share_topics import TopicView, existing
from sharecore.coordinator.timers import Deadline, Timers
from sharecore.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1


class Heartbeat(NamedTuple):
    """What a member says; None where nothing has changed since it last said it."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed: Collection[str] | None = None
    client_id: str = ""
    client_host: str = ""


class HeartbeatAnswer(NamedTuple):
    """What a member is told; an assignment of None is the one that it has."""

    member_id: str
    member_epoch: int
    heartbeat_ms: int = 0
    assignment: Assignment | None = None


Answered = Callable[[HeartbeatAnswer | KafkaError], None]


class ShareGroups:
    """All share groups of the broker.

    Args:
        records: `__consumer_offsets`.
        topics: the topics that there are.
        states: makes and deletes the state of share partitions.
        config: a group's configuration.
        max_size: members that a group may have (`group.share.max.size`).
        rack: of this broker.
        member_gone: called with group and member id when a member left, was fenced or fell silent.
    """

    kinds: Collection[int] = tuple(ShareRecord)

    def __init__(
        self,
        registry: GroupRegistry,
        records: RecordLog,
        topics: TopicView,
        states: ShareTopicStates,
        config: Callable[[str], GroupConfig],
        clock: Clock,
        timers: Timers,
        *,
        max_size: int = 200,
        rack: str | None = None,
        member_gone: Callable[[str, str], None] = lambda group_id, member_id: None,
    ) -> None:
        self.max_size = max_size
        self._registry = registry
        self._records = records
        self._topics = topics
        self._states = states
        self._config = config
        self._clock = clock
        self._timers = timers
        self._rack = rack
        self._member_gone = member_gone
        self._loaded: dict[str, ShareGroup] = {}
        self._sessions: dict[tuple[str, str], Deadline] = {}
        records.register(self)

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        """Takes a record as the broker starts; raises ValueError for a damaged one."""
        decoded = decode_share_key(kind, key)
        if decoded.kind is ShareRecord.METADATA and value is None:
            self._loaded.pop(decoded.group_id, None)
            return
        group = self._loaded.get(decoded.group_id)
        if group is None:
            if value is None:
                return
            group = self._loaded[decoded.group_id] = ShareGroup(decoded.group_id)
        group.replay(decoded, None if value is None else decode_share_value(decoded.kind, value))

    def start(self) -> None:
        """Goes on with the groups that were read: members have a new session, unfinished state changes
        end.
        """
        loaded, self._loaded = self._loaded, {}
        for group in loaded.values():
            self._registry.add(group)
            for member in group.members.values():
                self._renew_session(group, member)
            self._states.resume(group)

    def find(self, group_id: str) -> ShareGroup | None:
        """The share group of this name.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND when it is a group of another type.
        """
        return self._registry.find(group_id, ShareGroup)

    def create(self, group_id: str) -> ShareGroup:
        """A new group without members."""
        group = ShareGroup(group_id)
        self._registry.add(group)
        return group

    def heartbeat(self, request: Heartbeat, answered: Answered) -> None:
        """A member joins, says that it is there, or leaves; answered once what changed is durable.

        Raises:
            KafkaError: INVALID_REQUEST, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, GROUP_MAX_SIZE_REACHED,
                GROUP_ID_NOT_FOUND.
        """
        _check(request)
        if request.member_epoch == LEAVE_EPOCH:
            self._leave(request, answered)
            return
        group, member = self._admit(request)
        records: list[Record] = []
        changed = self._update_member(group, member, request)
        if changed:
            group.complete_at = -1
            group.epoch += 1
            records.append(group.member_record(member))
        self._observe_topics(group)
        self._renew_session(group, member)

        def go_on(error: KafkaError | None) -> None:
            # without state a partition is not assigned; the group tries again with a later heartbeat
            if group.members.get(member.member_id) is not member:
                answered(KafkaError(ErrorCode.UNKNOWN_MEMBER_ID))
                return
            if group.epoch != group.recorded_epoch:
                group.recorded_epoch = group.epoch
                records.append(self._epoch_record(group))
            self._assign(group, records)
            self._answer(group, member, request, records, answered)

        self._states.initialize_missing(group, go_on)

    def _admit(self, request: Heartbeat) -> tuple[ShareGroup, Member]:
        group = self.find(request.group_id)
        if group is None:
            if request.member_epoch != JOIN_EPOCH:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
            return self.create(request.group_id), Member(request.member_id)
        member = group.members.get(request.member_id)
        if request.member_epoch == JOIN_EPOCH:
            if member is None and len(group.members) >= self.max_size:
                raise KafkaError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"The share group has reached its maximum capacity of {self.max_size} members.",
                )
            return group, member or Member(request.member_id)
        if member is None:
            raise _unknown_member(request)
        _check_epoch(member, request.member_epoch)
        return group, member

    def _update_member(self, group: ShareGroup, member: Member, request: Heartbeat) -> bool:
        """Takes what the member says of itself; says whether the assignment may have to change."""
        new = member.member_id not in group.members
        subscribed = (
            member.subscribed if request.subscribed is None else tuple(sorted(set(request.subscribed)))
        )
        rack_id = member.rack_id if request.rack_id is None else request.rack_id
        changed = new or subscribed != member.subscribed or rack_id != member.rack_id
        member.subscribed, member.rack_id = subscribed, rack_id
        if new:
            member.client_id, member.client_host = request.client_id, request.client_host
            member.epoch = group.assignment_epoch
            group.members[member.member_id] = member
        return changed

    def _observe_topics(self, group: ShareGroup) -> None:
        """Notices topics that have appeared, gone or grown; a new assignment is then due."""
        if group.topics_seen == self._topics.version:
            return
        group.topics_seen = self._topics.version
        found = existing(self._topics, group.subscribed)
        seen = {topic.topic_id: topic.partitions for topic in found}
        if group.seen_partitions is not None and seen != group.seen_partitions:
            group.epoch += 1
        group.seen_partitions = seen

    def _epoch_record(self, group: ShareGroup) -> Record:
        group.metadata_hash = metadata_hash(existing(self._topics, group.subscribed), self._rack)
        return group.epoch_record()

    def _assign(self, group: ShareGroup, records: list[Record]) -> None:
        """Makes a new target assignment when one is due and the last is old enough."""
        if group.epoch <= group.assignment_epoch:
            return
        now_ms = self._clock.monotonic_ms()
        interval_ms = self._config(group.group_id).share_assignment_interval_ms
        if group.assigned_at_ms is not None and now_ms - group.assigned_at_ms < interval_ms:
            return
        group.assigned_at_ms = now_ms
        before, group.target = group.target, self._target(group)
        group.assignment_epoch = group.epoch
        changed = [
            member_id
            for member_id, partitions in group.target.items()
            if member_id not in before or before[member_id] != partitions
        ]
        records += group.target_records(changed, self._clock.now_ms())

    def _target(self, group: ShareGroup) -> dict[str, Assignment]:
        assignable: dict[UUID, list[int]] = {}
        ids: dict[str, UUID] = {}
        for topic in existing(self._topics, group.subscribed):
            ids[topic.name] = topic.topic_id
            state = group.initialized.get(topic.topic_id)
            if state is not None:
                assignable[topic.topic_id] = sorted(state.partitions)
        members = [
            AssignorMember(
                member.member_id,
                [ids[name] for name in member.subscribed if name in ids],
                group.target.get(member.member_id, {}),
            )
            for member in group.members.values()
        ]
        return assign(members, assignable)

    def _answer(
        self,
        group: ShareGroup,
        member: Member,
        request: Heartbeat,
        records: list[Record],
        answered: Answered,
    ) -> None:
        epoch = group.assignment_epoch
        assigned = self._visible(group, member)
        moved = member.epoch != epoch or member.assigned != assigned
        joined = request.member_epoch == JOIN_EPOCH
        if member.epoch != epoch or (joined and not member.previous_epoch):
            member.previous_epoch, member.epoch = request.member_epoch, epoch
        if moved or (joined and records):
            member.assigned = assigned
            records.append(group.current_record(member))
        tell = moved or joined or request.subscribed is not None
        heartbeat_ms = self._config(group.group_id).share_heartbeat_interval_ms
        answer = HeartbeatAnswer(member.member_id, member.epoch, heartbeat_ms, assigned if tell else None)
        if not records:
            answered(answer)
            return
        self._records.append(
            group.group_id, records, lambda error: answered(answer if error is None else error)
        )

    def _visible(self, group: ShareGroup, member: Member) -> Assignment:
        """The member's part of the target, without topics that it has given up or that are gone."""
        target = group.target.get(member.member_id, {})
        names = set(member.subscribed)
        visible: Assignment = {}
        for topic_id, partitions in target.items():
            topic = self._topics.find_id(topic_id)
            if topic is not None and topic.name in names:
                visible[topic_id] = partitions
        return visible

    # leaving

    def _leave(self, request: Heartbeat, answered: Answered) -> None:
        group = self.find(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        member = group.members.get(request.member_id)
        if member is None:
            raise _unknown_member(request)
        answer = HeartbeatAnswer(member.member_id, LEAVE_EPOCH)
        self._remove(group, member, lambda error: answered(answer if error is None else error))

    def _remove(self, group: ShareGroup, member: Member, done: Done) -> None:
        session = self._sessions.pop((group.group_id, member.member_id), None)
        if session is not None:
            session.cancel()
        del group.members[member.member_id]
        group.target.pop(member.member_id, None)
        group.epoch += 1
        group.recorded_epoch = group.epoch
        records = [*group.gone_records(member.member_id), self._epoch_record(group)]
        self._records.append(group.group_id, records, done)
        self._member_gone(group.group_id, member.member_id)

    def _renew_session(self, group: ShareGroup, member: Member) -> None:
        key = group.group_id, member.member_id
        session = self._sessions.get(key)
        if session is None:
            session = Deadline(self._clock, self._timers, lambda: self._session_ended(*key))
            self._sessions[key] = session
        session.set(self._config(group.group_id).share_session_timeout_ms)

    def _session_ended(self, group_id: str, member_id: str) -> None:
        self._sessions.pop((group_id, member_id), None)
        group = self._registry.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ShareGroup) else None
        if isinstance(group, ShareGroup) and member is not None:
            logger.info("member %s of share group %s fell silent", member_id, group_id)
            self._remove(group, member, _log_failure)

    # the end of a group

    def delete(self, group: ShareGroup, done: Done) -> None:
        """Deletes an empty group and the state of its share partitions.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

        def state_deleted(error: KafkaError | None) -> None:
            if error is not None:
                done(error)
                return
            if not group.is_empty:
                done(KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty."))
                return
            self._registry.remove(group)
            self._records.append(group.group_id, group.deleted_records(), done)

        self._states.delete_all(group, state_deleted)

    def topics_changed(self, deleted: Iterable[UUID] = ()) -> None:
        """Topics have gone: their share-partition state goes too."""
        gone = set(deleted)
        for group in self._registry:
            if isinstance(group, ShareGroup) and gone:
                self._states.forget_topics(group, gone)


def _check(request: Heartbeat) -> None:
    if not request.group_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    if not request.member_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    if len(request.member_id) > 255:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId is longer than 255 characters.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "RackId can't be empty.")
    if request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")


def _check_epoch(member: Member, epoch: int) -> None:
    known, previous = member.epoch, member.previous_epoch
    if epoch > known:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({known}). The member must abandon all its partitions and rejoin.",
        )
    if epoch < known and epoch != previous:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({known}), and it does not match the previous member epoch ({previous}). "
            "The member must abandon all its partitions and rejoin.",
        )


def _unknown_member(request: Heartbeat) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {request.member_id} is not a member of group {request.group_id}.",
    )


def _log_failure(error: KafkaError | None) -> None:
    if error is not None:
        logger.error("the end of a share group's member was not written: %s", error)
