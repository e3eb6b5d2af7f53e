"""Consumer groups whose members are assigned by the broker (KIP-848).

The heartbeat is the only request: with it a member joins, reports its state, is assigned, and leaves.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from uuid import UUID, uuid4

from sharecore.coordinator.consumer.assignors import ASSIGNORS, AssignorMember
from sharecore.coordinator.consumer.group import LEFT_STATIC_EPOCH, ConsumerGroup, LookUp
from sharecore.coordinator.consumer.heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    Answered,
    Heartbeat,
    HeartbeatAnswer,
    fenced_instance,
    unknown_instance,
)
from sharecore.coordinator.consumer.interfaces import Apart, ConsumerLimits, SubscribableTopics, at_once
from sharecore.coordinator.consumer.member import Assignment, ConsumerMember, MemberState, Partition
from sharecore.coordinator.consumer.memory import reserve_memory
from sharecore.coordinator.consumer.records import IGNORED, RECORDS, ConsumerRecord
from sharecore.coordinator.expressions import is_quick, matches_of_each
from sharecore.coordinator.metadata_hash import metadata_hash
from sharecore.coordinator.registry import Group, GroupRegistry, GroupType
from sharecore.coordinator.topics import TopicInfo
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Deadline, Done

logger = logging.getLogger(__name__)

_LOOKED_UP_MS = 10
"""Heartbeat interval while an expression is being matched."""


class ConsumerCoordinator:
    """Coordinator of consumer groups.

    Args:
        limits: returns the settings of a group.
        assignors: names of the available assignors; the first is the default.
        rack: the rack of this broker.
        replaced: called when a consumer group replaces an empty classic group of the same name.
        apart: runs long work beside the event loop.
    """

    kinds: Collection[int] = tuple(ConsumerRecord)

    def __init__(
        self,
        registry: GroupRegistry,
        records: CoordinatorRuntime,
        topics: SubscribableTopics,
        limits: Callable[[str], ConsumerLimits],
        *,
        assignors: Collection[str] = tuple(ASSIGNORS),
        rack: str | None = None,
        replaced: Callable[[Group], None],
        apart: Apart = at_once,
    ) -> None:
        self._registry = registry
        self._apart = apart
        self._records = records
        self._topics = topics
        self._limits = limits
        self._clock = records.clock
        self._timers = records.timers
        self._assignors = tuple(assignors)
        self._rack = rack
        self._replaced = replaced
        self._loaded: dict[str, ConsumerGroup] = {}
        self.rebalances = 0
        """Number of group-epoch increments."""
        records.register(self)

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        if kind in IGNORED:
            return
        RECORDS.replay(self._loaded, ConsumerGroup, kind, key, value)

    def resign(self, partition: int) -> None:
        """Discard the groups whose records are in a partition of the topic."""
        for group in self._registry:
            if isinstance(group, ConsumerGroup) and self._records.partition_of(group.group_id) == partition:
                self._registry.remove(group)
                for member in group.members.values():
                    member.cancel_timers()

    def start(self) -> None:
        """Resume the replayed groups; their members get a new session timeout."""
        loaded, self._loaded = self._loaded, {}
        for group in loaded.values():
            self._registry.add(group)
            # an earlier version did not persist the matches; the next heartbeat recomputes them
            for each in group.subscribed_expressions() - group.expressions.keys():
                group.expressions |= matches_of_each([each], self._topics.names())
            self._find_topics(group)
            for member in group.members.values():
                self._count_session(group, member)
                self._count_revocation(group, member)

    def heartbeat(self, request: Heartbeat, answered: Answered) -> None:
        """Process a member's join, state report or leave.

        Raises:
            KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID,
                FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED,
                INVALID_REGULAR_EXPRESSION.
        """
        if not request.member_id and request.epoch == JOIN_EPOCH:
            request = request._replace(member_id=_new_member_id())
        request.check(self._assignors)
        self._records.check(request.group_id)
        if request.epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self._leave(request, answered)
            return
        limit = self._limits(request.group_id).group_bytes_max
        reserve_memory(self._registry, self._topics, request, limit)
        group = self._group(request)
        member, records = self._admit(group, request)
        before = set(member.assigned)
        names, expression = member.subscribed_names, member.subscribed_regex or ""
        if self._update(member, request) or records:
            records.append(group.member_record(member))
        now_wanted = member.subscribed_regex or ""
        resubscribed = member.subscribed_names != names or now_wanted != expression
        records += group.forget_expressions()
        # matches of a new expression are computed after this heartbeat
        is_known = member.subscribed_names != names or not now_wanted or now_wanted in group.expressions
        if resubscribed and is_known:
            group.topics_version = -1
        if self._observe_topics(group) or (resubscribed and is_known):
            self._raise_epoch(group, records)
        self._assign(group, records)
        target = group.target.get(member.member_id, {})
        unwanted: Collection[Partition] = ()
        if resubscribed or group.target_epoch < group.epoch:
            topics = self._topics_of(group, member)
            target = {topic_id: target[topic_id] for topic_id in target.keys() & topics}
            unwanted = [each for each in member.assigned if each[0] not in topics] if resubscribed else ()
        if member.reconcile(
            target,
            group.target_epoch,
            request.owned,
            lambda each: group.is_free(member, each),
            unwanted,
        ):
            group.hold(member)
            records.append(group.current_record(member))
        self._count_session(group, member)
        self._count_revocation(group, member)
        reports = request.epoch == JOIN_EPOCH or request.is_full or before != member.assigned.keys()
        heartbeat_ms = self._limits(group.group_id).heartbeat_ms
        # a member's own heartbeat triggers the matching of its expression, so no other member needs a
        # notification
        found = (group.expressions or now_wanted) and self._look_up(group, request.may_describe, records)
        if found or group.is_looking:
            heartbeat_ms = min(_LOOKED_UP_MS, heartbeat_ms)
        answer = HeartbeatAnswer(
            member.member_id, member.epoch, heartbeat_ms, set(member.assigned) if reports else None
        )
        self._write(group, records, lambda error: answered(error or answer))

    def leave(
        self, group: ConsumerGroup, members: Sequence[tuple[str, str | None]], done: Done
    ) -> list[ErrorCode]:
        """Remove members for an operator (LeaveGroup); return an error code for each.

        Args:
            members: member ids and instance ids; a static member needs only the latter.
        """
        codes, gone = [], {}
        for member_id, instance_id in members:
            found = member_id if instance_id is None else group.static.get(instance_id, "")
            if found not in group.members:
                codes.append(ErrorCode.UNKNOWN_MEMBER_ID)
            elif member_id not in ("", found):
                codes.append(ErrorCode.FENCED_INSTANCE_ID)
            else:
                gone[found] = group.members[found]
                codes.append(ErrorCode.NONE)
        self._write(group, self._remove(group, *gone.values()) if gone else [], done)
        return codes

    def delete(self, group: ConsumerGroup) -> list[Record]:
        """Delete an empty group; return the records to write."""
        self._registry.remove(group)
        return group.deleted_records()

    def _group(self, request: Heartbeat) -> ConsumerGroup:
        found = self._registry.get(request.group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if found is None and request.epoch != JOIN_EPOCH:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        can_become_one = found is None or (found.type is GroupType.CLASSIC and found.is_empty)
        if not can_become_one or (found is not None and request.epoch != JOIN_EPOCH):
            text = f"Group {request.group_id} is not a consumer group."
            if found is not None and found.type is GroupType.CLASSIC and request.epoch == JOIN_EPOCH:
                text = (
                    f"Cannot upgrade classic group {request.group_id} to consumer group because online "
                    "upgrade is disabled."
                )
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        request.check_expression()
        if found is not None:
            self._replaced(found)
        group = ConsumerGroup(request.group_id)
        self._registry.add(group)
        return group

    def _admit(self, group: ConsumerGroup, request: Heartbeat) -> tuple[ConsumerMember, list[Record]]:
        """Return the requesting member, and the records to write if it is new."""
        max_size = self._limits(group.group_id).max_size
        is_known = request.member_id in group.members or request.instance_id in group.static
        if not is_known and len(group.members) >= max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {max_size} members.",
            )
        if request.instance_id is not None and request.instance_id in group.static:
            return self._admit_static(group, request, group.members[group.static[request.instance_id]])
        if request.instance_id is not None and request.epoch != JOIN_EPOCH:
            raise unknown_instance(request)
        member = group.members.get(request.member_id)
        if member is not None:
            if request.epoch != JOIN_EPOCH:
                member.check_epoch(request.epoch, request.owned)
            request.check_expression()
            return member, []
        if request.epoch != JOIN_EPOCH:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {request.member_id} is not a member of group {request.group_id}.",
            )
        request.check_expression()
        member = ConsumerMember(request.member_id, request.instance_id)
        group.add(member)
        return member, []

    def _admit_static(
        self, group: ConsumerGroup, request: Heartbeat, member: ConsumerMember
    ) -> tuple[ConsumerMember, list[Record]]:
        if request.epoch != JOIN_EPOCH:
            if member.member_id != request.member_id:
                raise fenced_instance(request, member.member_id)
            member.check_epoch(request.epoch, request.owned)
            request.check_expression()
            return member, []
        if member.epoch != LEFT_STATIC_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {request.instance_id} cannot join the "
                f"group because the instance id is owned by {member.member_id} member.",
            )
        request.check_expression()
        target = group.target.get(member.member_id, {})
        records = group.gone_records(member.member_id)
        group.remove(member)
        successor = ConsumerMember(
            request.member_id,
            request.instance_id,
            assigned=member.assigned,
            rack_id=member.rack_id,
            subscribed_names=member.subscribed_names,
            names_bytes=member.names_bytes,
            subscribed_regex=member.subscribed_regex,
            server_assignor=member.server_assignor,
        )
        group.add(successor)
        group.hold(successor)
        group.target[successor.member_id] = target
        return successor, [*records, *group.target_records([successor.member_id])]

    def _update(self, member: ConsumerMember, request: Heartbeat) -> bool:
        """Store the member's reported fields; return whether any has changed."""
        before = member.reported
        if request.subscribed_names is not None:
            member.subscribe(request.subscribed_names)
        if request.subscribed_regex is not None:
            member.subscribed_regex = request.subscribed_regex
        if request.server_assignor is not None:
            member.server_assignor = request.server_assignor
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        if request.rebalance_timeout_ms >= 0:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.client_id or not member.client_id:
            member.client_id, member.client_host = request.client_id, request.client_host
        return before != member.reported

    def _raise_epoch(self, group: ConsumerGroup, records: list[Record]) -> None:
        group.epoch += 1
        self.rebalances += 1
        records.append(group.epoch_record())

    def _look_up(
        self, group: ConsumerGroup, may_describe: Callable[[str], bool], records: list[Record]
    ) -> bool:
        """Match the expressions of a group if their result may have changed; return whether it has.

        Args:
            may_describe: returns whether the requesting member may describe a topic.
        """
        expressions = group.subscribed_expressions()
        if not expressions or group.is_looking or self._is_recent(group, expressions):
            return False
        group.looked_up = LookUp(self._topics.created, self._clock.monotonic_ms(), self._clock.now_ms())
        names = list(self._topics.names())
        if is_quick(expressions):
            return self._found(group, matches_of_each(expressions, names), may_describe, records)
        group.is_looking = True
        self._apart(
            group.group_id,
            partial(matches_of_each, expressions, names),
            lambda found: self._found_later(group, found, may_describe),
        )
        return False

    def _found_later(
        self, group: ConsumerGroup, found: dict[str, frozenset[str]], may_describe: Callable[[str], bool]
    ) -> None:
        group.is_looking = False
        if self._registry.get(group.group_id) is group:
            records: list[Record] = []
            self._found(group, found, may_describe, records)
            self._write(group, records, lambda error: None)

    def _found(
        self,
        group: ConsumerGroup,
        found: dict[str, frozenset[str]],
        may_describe: Callable[[str], bool],
        records: list[Record],
    ) -> bool:
        """Store the matches of a group's expressions; return whether the group has changed."""
        wanted = group.subscribed_expressions()
        seen = frozenset(filter(may_describe, frozenset[str]().union(*found.values())))
        found = {each: topics & seen for each, topics in found.items() if each in wanted}
        before, group.expressions = group.expressions, found
        changed = [each for each in sorted(found) if found[each] != before.get(each)]
        records += map(group.expression_record, changed)
        if all(topics == before.get(each, frozenset()) for each, topics in found.items()):
            return False
        group.topics_version = -1
        self._observe_topics(group)
        self._raise_epoch(group, records)
        return True

    def _is_recent(self, group: ConsumerGroup, expressions: set[str]) -> bool:
        """Return whether the matches of all expressions are known and recent."""
        last = group.looked_up
        if last is None or not expressions <= group.expressions.keys():
            return False
        refresh_ms = self._limits(group.group_id).expressions_refresh_ms
        is_old = self._clock.monotonic_ms() - last.at_ms >= refresh_ms
        return last.created == self._topics.created and not is_old

    def _topics_of(self, group: ConsumerGroup, member: ConsumerMember) -> set[UUID]:
        """Return the existing topics of a member's subscription."""
        return {group.topics[name][0] for name in group.subscribed(member) if name in group.topics}

    def _observe_topics(self, group: ConsumerGroup) -> bool:
        """Check a group's subscribed topics; return whether they have changed."""
        if group.topics_version == self._topics.version:
            return False
        group.topics_version = self._topics.version
        seen = metadata_hash(self._find_topics(group), self._rack)
        if seen == group.metadata_hash:
            return False
        group.metadata_hash = seen
        return True

    def _find_topics(self, group: ConsumerGroup) -> list[TopicInfo]:
        """Return the existing topics of a group's subscriptions, and cache their ids."""
        names = frozenset().union(*map(group.subscribed, group.members.values()))
        found = [topic for name in sorted(names) if (topic := self._topics.find(name)) is not None]
        group.topics = {topic.name: (topic.topic_id, topic.partitions) for topic in found}
        return found

    def _assign(self, group: ConsumerGroup, records: list[Record]) -> None:
        """Compute a new target assignment if one is due and the last is old enough."""
        now_ms = self._clock.monotonic_ms()
        interval_ms = self._limits(group.group_id).assignment_interval_ms
        recent = group.assigned_at_ms is not None and now_ms - group.assigned_at_ms < interval_ms
        if group.epoch <= group.target_epoch or recent:
            return
        group.assigned_at_ms = now_ms
        before, group.target = group.target, self._target(group)
        group.target_epoch, group.target_ms = group.epoch, self._clock.now_ms()
        changed = [each for each, target in group.target.items() if before.get(each) != target]
        records += group.target_records(changed)

    def _target(self, group: ConsumerGroup) -> dict[str, Assignment]:
        ids = {name: topic_id for name, (topic_id, _) in group.topics.items()}
        members = [
            AssignorMember(
                member.member_id,
                member.instance_id,
                frozenset(ids[name] for name in group.subscribed(member) if name in ids),
                [
                    (topic_id, partition)
                    for topic_id, partitions in group.target.get(member.member_id, {}).items()
                    for partition in partitions
                ],
            )
            for member in group.members.values()
        ]
        assign = ASSIGNORS[group.assignor(self._assignors[0])]
        return assign(members, dict(group.topics.values()))

    def _leave(self, request: Heartbeat, answered: Answered) -> None:
        group = self._registry.find(request.group_id, ConsumerGroup)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            owner = group.static.get(request.instance_id)
            if owner is None:
                raise unknown_instance(request)
            if owner != request.member_id:
                raise fenced_instance(request, owner)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {request.member_id} is not a member of group {request.group_id}.",
            )
        if request.epoch == LEAVE_STATIC_EPOCH:
            # it keeps its assignment until its session expires
            member.epoch, member.state, member.revoking = LEFT_STATIC_EPOCH, MemberState.STABLE, {}
            group.hold(member)
            self._count_revocation(group, member)
            records = [group.current_record(member)]
        else:
            records = self._remove(group, member)
        answer = HeartbeatAnswer(request.member_id, request.epoch)
        self._write(group, records, lambda error: answered(error or answer))

    def _remove(self, group: ConsumerGroup, *members: ConsumerMember) -> list[Record]:
        records = []
        for member in members:
            group.remove(member)
            records += group.gone_records(member.member_id)
        records += group.forget_expressions()
        group.topics_version = -1
        if group.is_empty:
            group.topics, group.metadata_hash = {}, 0
        else:
            # one epoch increment covers topic changes too
            self._observe_topics(group)
        self._raise_epoch(group, records)
        return records

    def _fence(self, group: ConsumerGroup, member: ConsumerMember, why: str) -> None:
        if group.members.get(member.member_id) is not member:
            return
        about = {"group": group.group_id, "member": member.member_id}
        logger.info("removed member %s of group %s: %s", member.member_id, group.group_id, why, extra=about)
        self._write(group, self._remove(group, member), lambda error: None)

    def _count_session(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if member.session is None:
            why = "its session expired"
            member.session = Deadline(self._clock, self._timers, lambda: self._fence(group, member, why))
        member.session.set(self._limits(group.group_id).session_timeout_ms)

    def _count_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            if member.revocation is not None:
                member.revocation.cancel()
                member.revocation = None
        elif member.revocation is None:
            why = "it did not revoke its partitions in time"
            member.revocation = Deadline(self._clock, self._timers, lambda: self._fence(group, member, why))
            member.revocation.set(member.rebalance_timeout_ms)

    def _write(self, group: ConsumerGroup, records: list[Record], done: Done) -> None:
        self._records.append(group.group_id, records, done)


def _new_member_id() -> str:
    return base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
