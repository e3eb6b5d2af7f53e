"""A group of the classic protocol: its members, generation and protocol."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from enum import Enum

from sharecore.coordinator.classic.member import ClassicMember, JoinResult, Protocols, SyncResult
from sharecore.coordinator.memory_limit import size_of
from sharecore.coordinator.offset_records import Commits
from sharecore.coordinator.registry import GROUP_BYTES, MEMBER_BYTES, GroupType
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Timer

CONSUMER_PROTOCOL = "consumer"
PENDING_BYTES = 400
"""Approximate memory size of a member id that was assigned but not used to join yet."""


class ClassicState(Enum):
    """State of a group's rebalance; the values are Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup:
    """State of one group. The coordinator changes it, and provides time and storage."""

    type = GroupType.CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.state_ms = now_ms
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}
        self.pending_joins: dict[str, Timer] = {}
        self.pending_syncs: set[str] = set()
        self.rebalance_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self.newcomers = False
        self.newcomers_wait = False
        self._supporters: Counter[str] = Counter()
        self._protocol_bytes = 0
        self._subscribed: set[str] | None = None

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def memory_bytes(self) -> int:
        members = self.members.values()
        names = sum(len(member.member_id) + len(member.client_id) for member in members)
        assigned = sum(len(member.assignment) for member in members)
        pending = sum(PENDING_BYTES + len(member_id) for member_id in self.pending_joins)
        own = GROUP_BYTES + len(self.group_id) + MEMBER_BYTES * len(members)
        return own + names + assigned + pending + self._protocol_bytes

    @property
    def is_simple(self) -> bool:
        """Whether it only stores offsets of consumers with manual assignment."""
        return self.state is ClassicState.EMPTY and not self.protocol_type and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """Maximum time for members to rejoin: the largest of their timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        """Enter a state."""
        self.state = state
        self.state_ms = now_ms

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Return the member of that id if it still owns its instance id.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID if another process owns the instance id.
        """
        if instance_id is not None:
            owner = self.static.get(instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

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
        """Check that a commit comes from a member of this generation, or targets an empty group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS,
                COORDINATOR_NOT_AVAILABLE.
        """
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is ClassicState.EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state is ClassicState.COMPLETING and not transactional:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow every caller to read a classic group's offsets."""

    def check_offset_delete(self) -> None:
        """Raise KafkaError (NON_EMPTY_GROUP) unless the offsets in use are known."""
        if self.members and self.protocol_type != CONSUMER_PROTOCOL:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Raise KafkaError (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND) unless the group may be deleted."""
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} not found.")
        if self.state is not ClassicState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def has_room_for(self, member_id: str, most: int) -> bool:
        """Return whether one more member may join, or a known one may join again.

        A rebalance counts only members that have rejoined; otherwise all members count.
        """
        if self.state in (ClassicState.EMPTY, ClassicState.DEAD):
            return True
        members = list(self.members.values())
        if self.state is ClassicState.PREPARING:
            members = [member for member in members if member.join_done is not None]
        return len(members) < most or any(member.member_id == member_id for member in members)

    def protocol_bytes_with(self, member_id: str, protocols: Protocols) -> int:
        """Return the size of all members' protocols after a member joins with these."""
        member = self.members.get(member_id)
        before = 0 if member is None else _size(member.protocols)
        return self._protocol_bytes - before + _size(protocols)

    def bytes_added(self, member_id: str, client_id: str, protocols: Protocols) -> int:
        """Return the approximate memory growth of the group if a member joins with these protocols."""
        added = self.protocol_bytes_with(member_id, protocols) - self._protocol_bytes
        return added if member_id in self.members else added + MEMBER_BYTES + 2 * len(client_id)

    def speaks_any(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols could join the group."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and protocols)
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supporters[name] == everybody for name, _ in protocols
        )

    def add(self, member: ClassicMember) -> None:
        """Add a member; the first one becomes the leader."""
        self.members[member.member_id] = member
        self._supporters.update(member.protocol_names)
        self._protocol_bytes += _size(member.protocols)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.take_pending(member.member_id)

    def take_pending(self, member_id: str) -> bool:
        """Cancel the wait for an assigned member id; return whether there was one."""
        timer = self.pending_joins.pop(member_id, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def update(self, member: ClassicMember, protocols: Protocols) -> None:
        """Replace a member's protocols."""
        self._supporters.subtract(member.protocol_names)
        self._protocol_bytes += _size(protocols) - _size(member.protocols)
        member.protocols = protocols
        self._supporters.update(member.protocol_names)

    def remove(self, member: ClassicMember) -> None:
        """Remove a member, and elect a new leader if needed."""
        del self.members[member.member_id]
        self._supporters.subtract(member.protocol_names)
        self._protocol_bytes -= _size(member.protocols)
        self.pending_syncs.discard(member.member_id)
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)
        member.session.cancel()

    def turn_away(self, member_id: str) -> None:
        """Remove a refused member, or the member id that was assigned to it."""
        self.take_pending(member_id)
        member = self.members.get(member_id)
        if member is not None:
            self.remove(member)

    def replace_static(self, instance_id: str, new_id: str) -> tuple[str, ClassicMember]:
        """Replace the member id of a static member after a restart; return the old id and the member.

        Returns the old id and the member.
        """
        old_id = self.static[instance_id]
        member = self.members.pop(old_id)
        self.members[new_id] = member
        self.static[instance_id] = new_id
        member.member_id = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.discard(old_id)
            self.pending_syncs.add(new_id)
        if self.leader == old_id:
            self.leader = new_id
        return old_id, member

    def elect_leader(self) -> bool:
        """Make a joining member the leader; return False if no member is joining."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.join_done is not None:
            return True
        candidate = next((member for member in self.members.values() if member.join_done is not None), None)
        if candidate is None:
            return False
        self.leader = candidate.member_id
        return True

    @property
    def all_joined(self) -> bool:
        """Whether every member is joining, and every assigned member id was used."""
        return not self.pending_joins and all(
            member.join_done is not None for member in self.members.values()
        )

    def choose_protocol(self) -> str:
        """Return the protocol supported by all members and preferred by most."""
        everybody = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == everybody}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        # on a tie, take the first one in Apache Kafka's hash table, so that a moved group keeps its protocol
        return max(sorted(votes, key=_bucket), key=votes.__getitem__)

    def unused_since_ms(self) -> int | None:
        """Return when the last member left; None to expire offsets by their commit times."""
        return self.state_ms if self.state is ClassicState.EMPTY and self.protocol_type else None

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that members consume; None if unknown."""
        if not self.members:
            return set()
        return self._subscribed if self.state is ClassicState.STABLE else None

    def is_subscribed(self, topic: str) -> bool:
        """Return whether members consume a topic, as of the last generation; True for unknown consumers."""
        if self._subscribed is not None:
            return topic in self._subscribed
        return self.protocol_type == CONSUMER_PROTOCOL

    def note_subscriptions(self) -> None:
        """Store the topics that the members of a generation consume."""
        self._subscribed = None
        if self.protocol_type == CONSUMER_PROTOCOL:
            subscriptions = (member.metadata(self.protocol) for member in self.members.values())
            with contextlib.suppress(ValueError):
                self._subscribed = set().union(*map(_topics, subscriptions))

    def next_generation(self, now_ms: int) -> None:
        """Start a generation with the current members."""
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol = self.choose_protocol()
            self.move_to(ClassicState.COMPLETING, now_ms)
        else:
            self.protocol = None
            self.leader = None
            self.move_to(ClassicState.EMPTY, now_ms)
        self.note_subscriptions()

    def join_result(self, member: ClassicMember, *, skip_assignment: bool = False) -> JoinResult:
        """Return the answer to a member's join."""
        is_leader = self.leader == member.member_id
        return JoinResult(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            skip_assignment=skip_assignment and is_leader,
            members=self.leaders_view() if is_leader else (),
        )

    def leaders_view(self) -> list[tuple[str, str | None, bytes]]:
        """Return id, instance id and metadata of all members, for the leader."""
        return [
            (member.member_id, member.instance_id, member.metadata(self.protocol))
            for member in self.members.values()
        ]

    def sync_result(self, member: ClassicMember) -> SyncResult:
        """Return a member's assignment."""
        return SyncResult(ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment)

    def cancel_timers(self, timers: Iterable[Timer | None] = ()) -> None:
        """Cancel the timers of the rebalance."""
        for timer in (self.rebalance_timer, self.sync_timer, *timers):
            if timer is not None:
                timer.cancel()
        self.rebalance_timer = self.sync_timer = None


_BUCKETS = 16


def _bucket(name: str) -> int:
    """Return a string's bucket in a small Java hash table."""
    code = 0
    encoded = name.encode("utf-16-be")
    for at in range(0, len(encoded), 2):
        unit = int.from_bytes(encoded[at : at + 2], "big")
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code ^ code >> 16) % _BUCKETS


def _topics(metadata: bytes) -> set[str]:
    """Return the topics of a consumer's subscription: version (2 bytes), array of strings, user data.

    Raises:
        ValueError: the subscription is invalid.
    """
    count = int.from_bytes(metadata[2:6], "big", signed=True)
    topics, offset = set(), 6
    for _ in range(count):
        size = int.from_bytes(metadata[offset : offset + 2], "big")
        offset += 2
        if offset + size > len(metadata):
            raise ValueError("the subscription is truncated")
        topics.add(metadata[offset : offset + size].decode(errors="replace"))
        offset += size
    own = max(0, int.from_bytes(metadata[offset : offset + 4], "big", signed=True))
    if offset + 4 + own > len(metadata):
        raise ValueError("the subscription is truncated")
    return topics


def _size(protocols: Protocols) -> int:
    return size_of(name for name, _ in protocols) + sum(len(metadata) for _, metadata in protocols)
