"""The share-group coordinator: members, assignments, and the lifecycle of share-partition state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from sharecore.config import GroupConfig
from sharecore.coordinator.memory_limit import GROUP_BYTES_MAX, check_group_bytes, size_of
from sharecore.coordinator.metadata_hash import metadata_hash
from sharecore.coordinator.registry import MEMBER_BYTES, GroupRegistry
from sharecore.coordinator.share.assignor import AssignorMember, assign
from sharecore.coordinator.share.group import SHARE_PARTITION_BYTES, Assignment, Member, ShareGroup
from sharecore.coordinator.share.records import RECORDS, ShareRecord
from sharecore.coordinator.share.topic_state import ShareTopicStates
from sharecore.coordinator.share.weights import weights_apply, weights_changed
from sharecore.coordinator.topics import TopicView, existing
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Deadline, Done

logger = logging.getLogger(__name__)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
_MEMBER_ID_LENGTH_MAX = 36
_STATE_MS = 10
"""Heartbeat interval while a member's state is being created: about the time that this takes."""


class Heartbeat(NamedTuple):
    """A member's heartbeat; None means unchanged since the last one."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed: Collection[str] | None = None
    client_id: str = ""
    client_host: str = ""


class HeartbeatAnswer(NamedTuple):
    """Answer to a heartbeat; an assignment of None means unchanged."""

    member_id: str
    member_epoch: int
    heartbeat_ms: int = 0
    assignment: Assignment | None = None


Answered = Callable[[HeartbeatAnswer | KafkaError], None]


class ShareGroupCoordinator:
    """Coordinator of share groups.

    Args:
        records: `__consumer_offsets`.
        topics: the existing topics.
        states: creates and deletes share-partition state.
        config: returns a group's configuration.
        max_size: maximum number of members of a group (`group.share.max.size`).
        bytes_max: limit on a group's subscriptions (`sharecore.group.bytes.max`).
        rack: the rack of this broker.
        member_left: called with group and member id when a member has left.
        member_joined: called with both when it has joined or rejoined.
        member_gone: called with both when its session has expired.
    """

    kinds: Collection[int] = tuple(ShareRecord)

    def __init__(
        self,
        registry: GroupRegistry,
        records: CoordinatorRuntime,
        topics: TopicView,
        states: ShareTopicStates,
        config: Callable[[str], GroupConfig],
        *,
        max_size: int = 200,
        bytes_max: int = GROUP_BYTES_MAX,
        rack: str | None = None,
        member_left: Callable[[str, str], None] = lambda group_id, member_id: None,
        member_joined: Callable[[str, str], None] = lambda group_id, member_id: None,
        member_gone: Callable[[str, str], None] = lambda group_id, member_id: None,
    ) -> None:
        self.max_size = max_size
        self._bytes_max = bytes_max
        self._registry = registry
        self._records = records
        self._topics = topics
        self._states = states
        self._config = config
        self._clock = records.clock
        self._timers = records.timers
        self._rack = rack
        self._member_left = member_left
        self._member_joined = member_joined
        self._member_gone = member_gone
        self._loaded: dict[str, ShareGroup] = {}
        self._sessions: dict[tuple[str, str], Deadline] = {}
        self.rebalances = 0
        """Number of group-epoch increments."""
        records.register(self)

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply a record at startup; raise ValueError for a damaged one."""
        RECORDS.replay(self._loaded, ShareGroup, kind, key, value)

    def start(self) -> None:
        """Resume the replayed groups: renew member sessions and finish pending state changes."""
        loaded, self._loaded = self._loaded, {}
        for group in loaded.values():
            self._registry.add(group)
            for member in group.members.values():
                self._renew_session(group, member)
            self._states.resume(group)

    def resign(self, partition: int) -> None:
        """Discard the groups whose records are in a partition of the topic: another broker takes over."""
        for group in self._registry:
            if isinstance(group, ShareGroup) and self._records.partition_of(group.group_id) == partition:
                group.resigned = True
                self._registry.remove(group)
                for member_id in group.members:
                    session = self._sessions.pop((group.group_id, member_id), None)
                    if session is not None:
                        session.cancel()

    def find(self, group_id: str) -> ShareGroup | None:
        """Return the share group of this name; None if the name is free.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND for a group of another type; NOT_COORDINATOR if another broker
                coordinates it.
        """
        self._records.check(group_id)
        self._records.check_owner(self._records.partition_of(group_id))
        return self._registry.find(group_id, ShareGroup)

    def create(self, group_id: str) -> ShareGroup:
        """Return a new group without members."""
        group = ShareGroup(group_id)
        self._registry.add(group)
        return group

    def heartbeat(self, request: Heartbeat, answered: Answered) -> None:
        """Process a member's join, heartbeat or leave; answer once the change is durable.

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
        bumped = self._update(group, member, request, records)
        self._assign(group, records)
        before = member.assigned
        if self._reconcile(group, member, bumped=bumped):
            records.append(group.current_record(member))
        self._renew_session(group, member)
        reports = request.member_epoch == JOIN_EPOCH or request.subscribed is not None
        assignment = member.assigned if reports or member.assigned != before else None
        epoch = member.epoch
        self._records.append(
            group.group_id,
            records,
            lambda error: answered(
                HeartbeatAnswer(member.member_id, epoch, self._next_ms(group, member), assignment)
                if error is None
                else error
            ),
        )
        self._states.initialize_missing(group)

    def _admit(self, request: Heartbeat) -> tuple[ShareGroup, Member]:
        """Return the group and its member, created if the request joins."""
        group = self.find(request.group_id)
        joining = request.member_epoch == JOIN_EPOCH
        if group is None and not joining:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
        if request.subscribed is not None:
            members = () if group is None else group.members.values()
            others = (each.subscribed for each in members if each.member_id != request.member_id)
            named = size_of(request.subscribed)
            check_group_bytes(request.group_id, named + sum(map(size_of, others)), self._bytes_max)
            self._take_room(group, request, named)
        if group is None:
            group = self.create(request.group_id)
        member = group.members.get(request.member_id)
        if member is None:
            if len(group.members) >= self.max_size:
                raise KafkaError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"The share group has reached its maximum capacity of {self.max_size} members.",
                )
            if not joining:
                raise _unknown_member(request)
            self._member_joined(group.group_id, request.member_id)
            return group, Member(request.member_id)
        if not joining:
            _check_epoch(member, request.member_epoch)
        return group, member

    def _take_room(self, group: ShareGroup | None, request: Heartbeat, named: int) -> None:
        """Raise KafkaError(GROUP_MAX_SIZE_REACHED) if all groups together would exceed their memory limit.

        Args:
            named: approximate memory size of the member's subscribed topics.
        """
        subscribed = set(request.subscribed or ())
        member = None if group is None else group.members.get(request.member_id)
        if member is not None:
            more = named - size_of(member.subscribed)
        else:
            more = named + MEMBER_BYTES + len(request.client_id)
        new = subscribed if group is None else subscribed - group.subscribed
        partitions = sum(topic.partitions for topic in existing(self._topics, new))
        self._registry.reserve_memory(request.group_id, more + partitions * SHARE_PARTITION_BYTES)

    def _update(self, group: ShareGroup, member: Member, request: Heartbeat, records: list[Record]) -> bool:
        """Store the member's reported fields; return whether the group epoch has increased."""
        before = member.reported
        subscribed = member.subscribed
        if request.subscribed is not None:
            member.subscribed = tuple(sorted(set(request.subscribed)))
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        member.client_id, member.client_host = request.client_id, request.client_host
        if member.reported != before or member.member_id not in group.members:
            records.append(group.member_record(member))
        bump = asked = member.subscribed != subscribed
        group.members[member.member_id] = member
        if group.assignment_epoch >= group.epoch and self._assignment_pending(group):
            bump = True
        if bump or group.topics_seen != self._topics.version:
            bump = self._look_at_topics(group) or bump
        bump = weights_changed(group, self._topics, is_weighted=self._is_weighted(group)) or bump
        if bump:
            group.epoch += 1
            self.rebalances += 1
            records.append(group.epoch_record())
        if asked:
            group.complete_at = -1
            member.asked_epoch = group.epoch
        return bump

    def _look_at_topics(self, group: ShareGroup) -> bool:
        """Return whether subscribed topics were created, deleted or extended."""
        group.topics_seen = self._topics.version
        seen = metadata_hash(existing(self._topics, group.subscribed), self._rack)
        changed = seen != group.metadata_hash
        group.metadata_hash = seen
        return changed

    def _is_weighted(self, group: ShareGroup) -> bool:
        """Return whether members get partitions of each of their topics."""
        return weights_apply(group, self._config(group.group_id).share_topic_weights)

    def _assignment_pending(self, group: ShareGroup) -> bool:
        """Return whether the assignment lacks partitions whose state now exists."""
        if group.pending is None:
            group.pending = self._is_pending(group)
        return group.pending

    def _is_pending(self, group: ShareGroup) -> bool:
        assigned: dict[UUID, set[int]] = {}
        for partitions in group.target.values():
            for topic_id, some in partitions.items():
                assigned.setdefault(topic_id, set()).update(some)
        names = group.subscribed
        return any(
            state.name in names
            and self._topics.find_id(topic_id) is not None
            and assigned.get(topic_id) != state.partitions
            for topic_id, state in group.initialized.items()
        )

    def _assign(self, group: ShareGroup, records: list[Record]) -> None:
        """Compute a new target assignment if one is due and the last is old enough."""
        if group.epoch <= group.assignment_epoch or self._due_ms(group):
            return
        now_ms = self._clock.now_ms()
        before, group.target = group.target, self._target(group)
        group.assignment_epoch, group.assigned_at_ms = group.epoch, now_ms
        group.pending = None
        changed = [
            member_id
            for member_id, partitions in group.target.items()
            if member_id not in before or before[member_id] != partitions
        ]
        records += group.target_records(changed)

    def _due_ms(self, group: ShareGroup) -> int:
        """Return the milliseconds until the next target assignment may be computed."""
        age_ms = self._clock.now_ms() - group.assigned_at_ms
        interval_ms = self._config(group.group_id).share_assignment_interval_ms
        # an assignment without partitions whose state was being created does not delay the next one, and
        # neither does a clock that was set back
        if not group.assigned_at_ms or age_ms < 0 or group.left_out:
            return 0
        return max(0, interval_ms - age_ms)

    def _target(self, group: ShareGroup) -> dict[str, Assignment]:
        assignable: dict[UUID, list[int]] = {}
        ids: dict[str, UUID] = {}
        group.left_out = False
        for topic in existing(self._topics, group.subscribed):
            ids[topic.name] = topic.topic_id
            state = group.initialized.get(topic.topic_id)
            partitions = sorted(state.partitions) if state is not None else []
            group.left_out |= len(partitions) < topic.partitions
            if partitions:
                assignable[topic.topic_id] = partitions
        members = [
            AssignorMember(
                member.member_id,
                [ids[name] for name in member.subscribed if name in ids],
                group.target.get(member.member_id, {}),
            )
            for member in group.members.values()
        ]
        return assign(members, assignable, each_topic=self._is_weighted(group))

    def _reconcile(self, group: ShareGroup, member: Member, *, bumped: bool) -> bool:
        """Move the member to the target assignment; return whether its answer changes."""
        before = member.epoch, member.assigned
        if member.epoch != group.assignment_epoch:
            member.previous_epoch, member.epoch = member.epoch, group.assignment_epoch
        elif not bumped:
            return False
        member.assigned = self._visible(group, member)
        return before != (member.epoch, member.assigned)

    def _next_ms(self, group: ShareGroup, member: Member) -> int:
        """Return the heartbeat interval: as configured, or shorter while an answer is pending."""
        interval_ms = self._config(group.group_id).share_heartbeat_interval_ms
        making_ms = self._states.making_ms(group)
        if making_ms is not None:
            return min(max(_STATE_MS, making_ms), interval_ms)
        if member.asked_epoch > group.assignment_epoch or self._assignment_pending(group):
            return min(max(1, self._due_ms(group)), interval_ms)
        return interval_ms

    def _visible(self, group: ShareGroup, member: Member) -> Assignment:
        """Return the member's part of the target, without unsubscribed and deleted topics."""
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
        self._member_left(group.group_id, member.member_id)

    def _remove(self, group: ShareGroup, member: Member, done: Done) -> None:
        session = self._sessions.pop((group.group_id, member.member_id), None)
        if session is not None:
            session.cancel()
        del group.members[member.member_id]
        group.target.pop(member.member_id, None)
        self._look_at_topics(group)
        group.epoch += 1
        self.rebalances += 1
        group.pending = None
        records = [*group.gone_records(member.member_id), group.epoch_record()]
        self._records.append(group.group_id, records, done)

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
            about = {"group": group_id, "member": member_id}
            logger.info("session of member %s of share group %s expired", member_id, group_id, extra=about)
            self._remove(group, member, _log_failure)
            self._member_gone(group_id, member_id)

    # deleting groups

    def delete(self, group: ShareGroup, done: Done) -> None:
        """Delete an empty group and the state of its share partitions.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        group.check_delete()

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

    def state_lost(self, key: SharePartitionKey) -> None:
        """Recreate share-partition state that its leader has not found."""
        group = self._registry.get(key.group_id)
        if isinstance(group, ShareGroup):
            self._states.lost(group, key.topic_id)

    def check_states(self, doubted: Callable[[SharePartitionKey], bool]) -> None:
        """Check which recorded state is lost, as a leader on another broker cannot report it.

        Args:
            doubted: selects the share partitions to check.
        """
        for group in self._registry:
            if isinstance(group, ShareGroup):
                self._states.check(group, doubted)

    def topics_changed(self, deleted: Iterable[UUID] = ()) -> None:
        """Delete the share-partition state of deleted topics."""
        gone = set(deleted)
        for group in self._registry:
            if isinstance(group, ShareGroup) and gone:
                self._states.forget_topics(group, gone)


def _check(request: Heartbeat) -> None:
    if not 0 < len(request.member_id) <= _MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not request.member_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    if not request.group_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
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
        logger.error("cannot persist the end of a share-group member: %s", error)
