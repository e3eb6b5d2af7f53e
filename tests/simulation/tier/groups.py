"""Classic groups of the simulated cluster: JoinGroup, SyncGroup, Heartbeat, OffsetCommit and LeaveGroup, as
Kafka has them; offsets themselves nobody asks for.

A group outlives the broker that coordinates it; its members have a session's time to be heard by the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sharecore.errors import ErrorCode

Reply = Callable[[Mapping[str, Any]], None]


@dataclass
class _Member:
    member_id: str
    instance_id: str | None
    session_s: float
    rebalance_s: float
    metadata: bytes = b""
    assignment: bytes = b""
    joining: Reply | None = None
    syncing: Reply | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass
class Group:
    """One group.

    Args:
        later: calls back after so many seconds.
        delay_s: how long the first members of an empty group are waited for.
    """

    later: Callable[..., asyncio.TimerHandle]
    delay_s: float
    generation: int = 0
    leader: str = ""
    state: str = "empty"
    members: dict[str, _Member] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    _number: int = 0
    _timer: asyncio.TimerHandle | None = None
    _first: bool = False
    _saved: tuple[int, str, list[_Member]] = (0, "", [])

    # requests

    def join(self, body: Any, reply: Reply) -> None:
        """JoinGroup: answered when all members have joined, or those that have not are out."""
        instance, member_id = body.group_instance_id, body.member_id
        if member_id and member_id not in self.members:
            if member_id not in self.expected:
                reply({"error_code": self._unknown(instance), "member_id": member_id})
                return
            self.expected.discard(member_id)
        if member_id and (code := self._stranger(member_id, instance)):
            reply({"error_code": code, "member_id": member_id})
            return
        if not member_id:
            self._number += 1
            member_id = f"{instance or 'member'}-{self._number}"
            if instance is None:
                self.expected.add(member_id)
                reply({"error_code": ErrorCode.MEMBER_ID_REQUIRED, "member_id": member_id})
                return
            if self._replace(body, member_id, reply):
                return
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = _Member(
                member_id, instance, body.session_timeout_ms / 1000, body.rebalance_timeout_ms / 1000
            )
        elif self.state == "stable" and member_id != self.leader and member.metadata == _of(body):
            self.alive(member)
            reply(self._joined(member))
            return
        member.metadata = _of(body)
        if member.joining is not None:
            member.joining({"error_code": ErrorCode.REBALANCE_IN_PROGRESS, "member_id": member_id})
        member.joining = reply
        self.alive(member)
        self._rebalance()

    def sync(self, body: Any, reply: Reply) -> None:
        """SyncGroup: answered when the leader has brought the assignment."""
        code = self._check(body)
        if not code and self.state == "preparing":
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code:
            reply({"error_code": code})
            return
        member = self.members[body.member_id]
        self.alive(member)
        if self.state == "stable":
            reply({"assignment": member.assignment})
            return
        member.syncing = reply
        if body.member_id == self.leader:
            given = {each.member_id: bytes(each.assignment) for each in body.assignments}
            self.state = "stable"
            for each in self.members.values():
                each.assignment = given.get(each.member_id, b"")
                waiting, each.syncing = each.syncing, None
                if waiting is not None:
                    self.alive(each)
                    waiting({"assignment": each.assignment})
            self._save()

    def heartbeat(self, body: Any, reply: Reply) -> None:
        """Heartbeat."""
        code = self._check(body)
        if not code:
            self.alive(self.members[body.member_id])
            if self.state == "preparing":
                code = ErrorCode.REBALANCE_IN_PROGRESS
        reply({"error_code": code})

    def commit(self, body: Any, reply: Reply) -> None:
        """OffsetCommit: not between a join and the assignment."""
        code = self._check(body)
        if not code:
            self.alive(self.members[body.member_id])
            if self.state == "completing":
                code = ErrorCode.REBALANCE_IN_PROGRESS
        reply(committed(body, code))

    def leave(self, body: Any, reply: Reply) -> None:
        """LeaveGroup."""
        found = []
        for each in getattr(body, "members", None) or [body]:
            instance = getattr(each, "group_instance_id", None)
            names = [m for m in self.members.values() if instance is not None and m.instance_id == instance]
            member = self.members.get(each.member_id) or (names[0] if names and not each.member_id else None)
            code = 0 if member is not None else ErrorCode.UNKNOWN_MEMBER_ID
            if member is not None:
                self._remove(member)
            found.append({"member_id": each.member_id, "group_instance_id": instance, "error_code": code})
        reply({"members": found, "error_code": 0})

    # members

    def _unknown(self, instance: str | None) -> ErrorCode:
        known = instance is not None and any(m.instance_id == instance for m in self.members.values())
        return ErrorCode.FENCED_INSTANCE_ID if known else ErrorCode.UNKNOWN_MEMBER_ID

    def _stranger(self, member_id: str, instance: str | None) -> int:
        named = [m for m in self.members.values() if instance is not None and m.instance_id == instance]
        return ErrorCode.FENCED_INSTANCE_ID if named and named[0].member_id != member_id else 0

    def _check(self, body: Any) -> int:
        if body.member_id not in self.members:
            return self._unknown(body.group_instance_id)
        if code := self._stranger(body.member_id, body.group_instance_id):
            return code
        generation = getattr(body, "generation_id_or_member_epoch", None)
        if generation is None:
            generation = body.generation_id
        return 0 if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def _replace(self, body: Any, member_id: str, reply: Reply) -> bool:
        """A new process takes the place of a static member; the others need not notice if nothing changes."""
        instance = body.group_instance_id
        old = next((m for m in self.members.values() if m.instance_id == instance), None)
        if old is None:
            return False
        del self.members[old.member_id]
        for waiting in (old.joining, old.syncing):
            if waiting is not None:
                waiting({"error_code": ErrorCode.FENCED_INSTANCE_ID})
        if self.leader == old.member_id:
            self.leader = member_id
        old.member_id, old.joining, old.syncing = member_id, None, None
        self.members[member_id] = old
        self.alive(old)
        if self.state == "stable":
            # as in Kafka, the other members do not learn its new metadata
            old.metadata = _of(body)
            self._save()
            reply(self._joined(old) | {"skip_assignment": True})
            return True
        old.metadata, old.joining = _of(body), reply
        self._rebalance()
        return True

    def alive(self, member: _Member) -> None:
        """It was heard of."""
        if member.timer is not None:
            member.timer.cancel()
        member.timer = self.later(member.session_s, self._expired, member)

    def _expired(self, member: _Member) -> None:
        if self.members.get(member.member_id) is not member:
            return
        if member.joining is not None or member.syncing is not None:
            self.alive(member)
        else:
            self._remove(member)

    def _remove(self, member: _Member) -> None:
        del self.members[member.member_id]
        if member.timer is not None:
            member.timer.cancel()
        for waiting in (member.joining, member.syncing):
            if waiting is not None:
                waiting({"error_code": ErrorCode.UNKNOWN_MEMBER_ID})
        if self.members:
            self._rebalance()
        else:
            self.state, self.leader = "empty", ""
            self.generation += 1
            self._save()

    # generations

    def _rebalance(self) -> None:
        if self.state != "preparing":
            self._first = self.state == "empty"
            for member in self.members.values():
                waiting, member.syncing = member.syncing, None
                if waiting is not None:
                    waiting({"error_code": ErrorCode.REBALANCE_IN_PROGRESS})
            self.state = "preparing"
            longest = max(member.rebalance_s for member in self.members.values())
            self._wait(self.delay_s if self._first else longest)
        if not self._first and all(member.joining is not None for member in self.members.values()):
            self._begin()

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.later(seconds, self._begin)

    def _begin(self) -> None:
        if self.state != "preparing":
            return
        # static members that have not joined stay until their session expires
        for member in [m for m in self.members.values() if m.joining is None and m.instance_id is None]:
            del self.members[member.member_id]
            if member.timer is not None:
                member.timer.cancel()
        joined = [member.member_id for member in self.members.values() if member.joining is not None]
        if self.members and not joined:
            self._wait(max(member.rebalance_s for member in self.members.values()))
            return
        if self._timer is not None:
            self._timer.cancel()
        self.generation += 1
        if not self.members:
            self.state, self.leader = "empty", ""
            self._save()
            return
        self.state = "completing"
        if self.leader not in joined:
            self.leader = joined[0]
        for member in self.members.values():
            waiting, member.joining = member.joining, None
            if waiting is not None:
                self.alive(member)
                waiting(self._joined(member))

    def _joined(self, member: _Member) -> dict[str, Any]:
        leads = member.member_id == self.leader
        return {
            "generation_id": self.generation,
            "protocol_type": "sharecore",
            "protocol_name": "slots-v1",
            "leader": self.leader,
            "member_id": member.member_id,
            "members": [
                {"member_id": m.member_id, "group_instance_id": m.instance_id, "metadata": m.metadata}
                for m in self.members.values()
                if leads
            ],
        }

    # the coordinator

    def _save(self) -> None:
        """What the next coordinator will read."""
        members = [replace(m, joining=None, syncing=None, timer=None) for m in self.members.values()]
        self._saved = self.generation, self.leader, members

    def moved(self) -> None:
        """Another broker coordinates: what waited is gone, what was not written too, and all sessions begin
        anew.
        """
        for member in self.members.values():
            if member.timer is not None:
                member.timer.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self.generation, self.leader, members = self._saved
        self.members = {each.member_id: replace(each) for each in members}
        self.state = "stable" if members else "empty"
        for member in self.members.values():
            self.alive(member)


def committed(body: Any, code: int) -> dict[str, Any]:
    """What is answered of each partition whose offset is committed."""
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": each.partition_index, "error_code": code} for each in topic.partitions
            ],
        }
        for topic in body.topics
    ]
    return {"topics": topics}


def _of(body: Any) -> bytes:
    return bytes(body.protocols[0].metadata)
