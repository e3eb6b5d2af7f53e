"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Members compute the assignment themselves; the coordinator synchronizes them and enforces timeouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from sharecore.coordinator.classic.group import ClassicGroup, ClassicState
from sharecore.coordinator.classic.member import (
    ClassicMember,
    JoinDone,
    JoinResult,
    Protocols,
    SyncDone,
    SyncResult,
)
from sharecore.coordinator.classic.rebalance import Rebalancer
from sharecore.coordinator.classic.store import ClassicStore
from sharecore.coordinator.consumer.group import ConsumerGroup
from sharecore.coordinator.memory_limit import GROUP_BYTES_MAX
from sharecore.coordinator.registry import Group, GroupRegistry, GroupType
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Deadline, Done

if TYPE_CHECKING:
    from sharecore.coordinator import record_values


class ClassicLimits(NamedTuple):
    """Broker settings of classic groups; times in milliseconds."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    initial_delay_ms: int = 3_000
    group_bytes_max: int = GROUP_BYTES_MAX
    """Limit on the size of all members' protocols, which the leader gets in one answer, and of assignments.
    """


class JoinRequest(NamedTuple):
    """Request of a member to join the next generation.

    Args:
        member_id: empty for a new member.
        must_return: whether a member must join again with the member id it gets (JoinGroup 4, KIP-394).
        can_skip_assignment: whether a returning leader may skip the assignment (JoinGroup 9, KIP-814).
    """

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    must_return: bool = False
    can_skip_assignment: bool = False


class Leaving(NamedTuple):
    """A leaving member; without a member id, the owner of the instance id."""

    member_id: str
    instance_id: str | None = None
    reason: str = "it left"


class SyncRequest(NamedTuple):
    """Request of a member for its assignment; the leader's request contains all assignments."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, bytes]


class ClassicCoordinator:
    """Coordinator of classic groups.

    Args:
        registry: all groups of the broker.
        records: `__consumer_offsets`.
        limits: the broker's settings.
        replaced: called when a classic group replaces an empty consumer group of the same name.
    """

    def __init__(
        self,
        registry: GroupRegistry,
        records: CoordinatorRuntime,
        limits: ClassicLimits,
        *,
        replaced: Callable[[Group], None] = lambda group: None,
    ) -> None:
        self._registry = registry
        self._clock = records.clock
        self._timers = records.timers
        self._limits = limits
        self._replaced = replaced
        self._store = ClassicStore(records, self.start)
        self._rebalancer = Rebalancer(self._store, records.clock, records.timers, limits.initial_delay_ms)

    def start(self) -> None:
        """Create the replayed groups; their members get a new session timeout."""
        loaded, self._store.loaded = self._store.loaded, {}
        for group_id, value in loaded.items():
            # after a failed write, existing groups are kept: they are not ahead of the log
            if self._registry.get(group_id) is None:
                self._registry.add(self._restore(group_id, value))

    def create(self, group_id: str) -> ClassicGroup:
        """Create a group without members."""
        group = ClassicGroup(group_id, self._clock.now_ms())
        self._registry.add(group)
        return group

    def forget_all(self) -> None:
        """Remove all groups of a deleted topic: waiting members must join again."""
        for group in self._registry:
            if isinstance(group, ClassicGroup):
                self._registry.remove(group)
                self._end(group)

    def _end(self, group: ClassicGroup) -> None:
        group.move_to(ClassicState.DEAD, self._clock.now_ms())
        group.cancel_timers(group.pending_joins.values())
        for member in list(group.members.values()):
            self._rebalancer.take_out(group, member)

    def delete(self, group: ClassicGroup) -> list[Record]:
        """Delete an empty group; return the records to write."""
        group.move_to(ClassicState.DEAD, self._clock.now_ms())
        group.cancel_timers(group.pending_joins.values())
        self._registry.remove(group)
        return [self._store.deleted_record(group.group_id)]

    def join(self, request: JoinRequest, done: JoinDone) -> None:
        """Add or update a member; `done` is called when the next generation begins."""
        try:
            self._join(request, done)
        except KafkaError as error:
            done(JoinResult(error.code, member_id=request.member_id))

    def sync(self, request: SyncRequest, done: SyncDone) -> None:
        """Request a member's assignment; `done` is called when the leader's assignment is durable."""
        try:
            self._sync(request, done)
        except KafkaError as error:
            done(SyncResult(error.code))

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Renew a member's session.

        Raises:
            KafkaError: REBALANCE_IN_PROGRESS if the member must join again; UNKNOWN_MEMBER_ID,
                FENCED_INSTANCE_ID, ILLEGAL_GENERATION if it is no longer in the group.
        """
        group, member = self._member(group_id, member_id, instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalancer.keep_alive(member)
        if group.state is ClassicState.PREPARING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(self, group_id: str, members: Sequence[Leaving]) -> list[ErrorCode]:
        """Remove members by member id or instance id; return an error code for each."""
        group = self._find(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)
        codes = [self._leave(group, leaving) for leaving in members]
        if ErrorCode.NONE in codes:
            self._rebalancer.lost(group, "; ".join(dict.fromkeys(each.reason for each in members)))
        return codes

    def when_left(self, group_id: str, done: Done) -> None:
        """Call back once the record of an emptied group is durable."""
        self._store.when_emptied(group_id, done)

    def _leave(self, group: ClassicGroup, leaving: Leaving) -> ErrorCode:
        member_id, instance_id = leaving.member_id, leaving.instance_id
        if not member_id and instance_id is not None:
            member_id = group.static.get(instance_id, "")
        if group.take_pending(member_id):
            return ErrorCode.NONE
        try:
            self._rebalancer.take_out(group, group.check_member(member_id, instance_id))
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def _find(self, group_id: str) -> ClassicGroup | None:
        group = self._registry.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _member(
        self, group_id: str, member_id: str, instance_id: str | None
    ) -> tuple[ClassicGroup, ClassicMember]:
        self._store.check(group_id)
        group = self._find(group_id)
        if group is None:
            raise KafkaError(self._stranger(group_id, member_id, instance_id))
        member = group.check_member(member_id, instance_id)
        return group, member

    def _stranger(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return the error for a member without a classic group; a consumer group may fence a static one."""
        found = self._registry.get(group_id)
        static = found.static if isinstance(found, ConsumerGroup) else {}
        owner = static.get(instance_id) if instance_id is not None else None
        return ErrorCode.UNKNOWN_MEMBER_ID if owner in (None, member_id) else ErrorCode.FENCED_INSTANCE_ID

    def _group_to_join(self, request: JoinRequest) -> ClassicGroup | None:
        """Return the group, created if the name is free; None if another type of group has the name."""
        found = self._registry.get(request.group_id)
        if isinstance(found, ClassicGroup):
            return found
        if found is not None and (found.type is GroupType.SHARE or not found.is_empty):
            return None
        if request.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        group = self.create(request.group_id)
        if found is not None:
            self._replaced(found)
        self._store.write_empty(group, lambda: self._displaced(group))
        return group

    def _displaced(self, group: ClassicGroup) -> None:
        """End a new group whose write failed, if its name has reverted: its members join again."""
        if self._registry.get(group.group_id) is not group:
            self._end(group)

    def _join(self, request: JoinRequest, done: JoinDone) -> None:
        self._store.check(request.group_id)
        limits = self._limits
        if not limits.min_session_timeout_ms <= request.session_timeout_ms <= limits.max_session_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        found = self._find(request.group_id) or ClassicGroup(request.group_id, 0)
        more = found.bytes_added(request.member_id, request.client_id, request.protocols)
        self._registry.reserve_memory(request.group_id, more)
        group = self._group_to_join(request)
        if group is None:
            done(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        if (
            not group.has_room_for(request.member_id, limits.max_size)
            or group.protocol_bytes_with(request.member_id, request.protocols) > limits.group_bytes_max
        ):
            group.turn_away(request.member_id)
            done(JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        names = [name for name, _ in request.protocols]
        if len(set(names)) < len(names) or not group.speaks_any(request.protocol_type, request.protocols):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id in group.pending_joins and request.instance_id is None:
            self._add(group, request, request.member_id, done)
        elif request.member_id:
            self._rejoin(group, request, done)
        elif request.instance_id is not None:
            member_id = f"{request.instance_id}-{uuid4()}"
            if request.instance_id in group.static:
                self._replace_static(group, request, member_id, done)
            else:
                self._add(group, request, member_id, done)
        elif request.must_return:
            self._expect(group, request, done)
        else:
            self._add(group, request, f"{request.client_id}-{uuid4()}", done)

    def _expect(self, group: ClassicGroup, request: JoinRequest, done: JoinDone) -> None:
        """Assign a member id to join with again, so that clients that never return leave no members."""
        member_id = f"{request.client_id}-{uuid4()}"

        def expired() -> None:
            if group.take_pending(member_id):
                self._rebalancer.complete_if_all_joined(group, at_once=True)

        group.pending_joins[member_id] = self._timers.call_later(request.session_timeout_ms / 1000, expired)
        done(JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))

    def _add(self, group: ClassicGroup, request: JoinRequest, member_id: str, done: JoinDone) -> None:
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=request.protocols,
            is_new=True,
            join_done=done,
        )
        if group.is_empty:
            group.protocol_type = request.protocol_type
        self._enter(group, member)
        group.newcomers = True
        self._rebalancer.request(group, f"member {member_id} joined")

    def _rejoin(self, group: ClassicGroup, request: JoinRequest, done: JoinDone) -> None:
        member = group.check_member(request.member_id, request.instance_id)
        unchanged = member.speaks_as(request.protocols)
        if group.state is ClassicState.COMPLETING and unchanged:
            # the answer to its last join was lost
            done(group.join_result(member))
            return
        if group.state is ClassicState.STABLE and unchanged and member.member_id != group.leader:
            done(group.join_result(member))
            return
        if group.state in (ClassicState.EMPTY, ClassicState.DEAD):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._wait_to_join(group, member, request, done)
        self._rebalancer.request(group, f"member {member.member_id} joined again")

    def _wait_to_join(
        self, group: ClassicGroup, member: ClassicMember, request: JoinRequest, done: JoinDone
    ) -> None:
        group.update(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.finish_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))
        member.join_done = done

    def _replace_static(
        self, group: ClassicGroup, request: JoinRequest, member_id: str, done: JoinDone
    ) -> None:
        """Replace a static member's process; if nothing changes, no rebalance is needed."""
        assert request.instance_id is not None
        leader_before = group.leader
        old_id, member = group.replace_static(request.instance_id, member_id)
        member.finish_join(JoinResult(ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
        member.finish_sync(SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._wait_to_join(group, member, request, done)
        self._rebalancer.keep_alive(member)
        if group.state is not ClassicState.STABLE or group.choose_protocol() != group.protocol:
            self._rebalancer.request(group, f"static member {request.instance_id} came back")
            return
        generation = group.generation

        def durable(error: KafkaError | None) -> None:
            if error is not None:
                if group.static.get(request.instance_id or "") == member_id:
                    group.replace_static(request.instance_id or "", old_id)
                    group.update(member, before[0])
                    member.rebalance_timeout_ms, member.session_timeout_ms = before[1:]
                member.finish_join(JoinResult(error.code, member_id=member_id))
            elif group.state is ClassicState.STABLE and group.generation == generation:
                result = group.join_result(member, skip_assignment=True)
                if not request.can_skip_assignment:
                    # an older client that believes it leads would assign again
                    result = result._replace(leader=leader_before or "", skip_assignment=False, members=())
                member.finish_join(result)

        assignments = {each.member_id: each.assignment for each in group.members.values()}
        self._store.write(group, assignments, durable)

    def _session_ended(self, group: ClassicGroup, member: ClassicMember) -> None:
        if group.members.get(member.member_id) is not member:
            return
        if not member.is_new and (member.join_done is not None or member.sync_done is not None):
            self._rebalancer.keep_alive(member)
            return
        self._rebalancer.remove(group, member, f"member {member.member_id} exceeded its session timeout")

    def _sync(self, request: SyncRequest, done: SyncDone) -> None:
        group, member = self._member(request.group_id, request.member_id, request.instance_id)
        if request.generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if request.protocol_type not in (None, group.protocol_type) or request.protocol not in (
            None,
            group.protocol,
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is ClassicState.PREPARING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        member.finish_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_done = done
        if group.state is ClassicState.STABLE:
            self._rebalancer.synced(group, member)
            return
        group.pending_syncs.discard(member.member_id)
        if member.member_id == group.leader:
            self._write_assignment(group, request)

    def _write_assignment(self, group: ClassicGroup, request: SyncRequest) -> None:
        generation = group.generation
        assignments = {member_id: request.assignments.get(member_id, b"") for member_id in group.members}
        bytes_max = self._limits.group_bytes_max

        def durable(error: KafkaError | None) -> None:
            if group.state is not ClassicState.COMPLETING or group.generation != generation:
                return
            if error is None:
                self._rebalancer.assign(group, assignments)
                return
            self._rebalancer.fail_syncs(group, error.code)
            self._rebalancer.request(group, "the assignment could not be persisted")

        size = sum(map(len, assignments.values()))
        try:
            if size > bytes_max:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._registry.reserve_memory(group.group_id, size)
        except KafkaError:
            # Apache Kafka's code for a group record that is too large for the log
            durable(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._store.write(group, assignments, durable)

    def _restore(self, group_id: str, value: record_values.GroupMetadata) -> ClassicGroup:
        group = ClassicGroup(group_id, getattr(value, "state_ms", self._clock.now_ms()))
        group.generation = value.generation
        group.protocol_type = value.protocol_type
        group.protocol = value.protocol
        group.leader = value.leader
        for saved in value.members:
            member = ClassicMember(
                member_id=saved.member_id,
                instance_id=getattr(saved, "instance_id", None),
                client_id=saved.client_id,
                client_host=saved.client_host,
                rebalance_timeout_ms=_or_session(saved),
                session_timeout_ms=saved.session_timeout_ms,
                protocols=[(value.protocol or "", saved.subscription)],
                assignment=saved.assignment,
            )
            self._enter(group, member)
        if group.members:
            group.state = ClassicState.STABLE
        group.note_subscriptions()
        return group

    def _enter(self, group: ClassicGroup, member: ClassicMember) -> None:
        member.session = Deadline(self._clock, self._timers, lambda: self._session_ended(group, member))
        group.add(member)
        self._rebalancer.keep_alive(member)


def _or_session(saved: record_values.GroupMetadataMembers) -> int:
    """Return the rebalance timeout of a saved member, or its session timeout in the oldest records."""
    timeout_ms: int = getattr(saved, "rebalance_timeout_ms", -1)
    return timeout_ms if timeout_ms >= 0 else saved.session_timeout_ms
