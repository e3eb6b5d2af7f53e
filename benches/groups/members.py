"""Members of share groups who only speak to the coordinator, each at its moment of the interval."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode
from sharecore.protocol import calls

LEAVE_EPOCH = -1
Partition = tuple[UUID, int]
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class CoordinatorMissing(Exception):
    """The broker has not made its topics yet."""


class Member:
    """One member and what it has been told."""

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name
        self.epoch = 0
        self.assigned: frozenset[Partition] = frozenset()

    async def speak(self, epoch: int | None = None) -> float:
        """One heartbeat; returns the seconds until its answer."""
        message: dict[str, Any] = {
            "group_id": self.group.name,
            "member_id": self.name,
            "member_epoch": self.epoch if epoch is None else epoch,
        }
        if self.epoch == 0:
            message["subscribed_topic_names"] = [self.group.topic]
        began = time.perf_counter()
        answer = await self.group.connection.request(calls.SHARE_GROUP_HEARTBEAT, message)
        took = time.perf_counter() - began
        if answer.error_code in _NOT_YET:
            raise CoordinatorMissing
        if answer.error_code:
            raise RuntimeError(
                f"{self.name} of {self.group.name}: error {answer.error_code} {answer.error_message}"
            )
        self.epoch = max(0, answer.member_epoch)
        if answer.assignment is not None:
            self.assigned = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                if topic.topic_id is not None
                for index in topic.partitions
            )
        return took

    async def join_once_there(self) -> None:
        """Join, when the coordinator is ready for its group."""
        while self.epoch == 0:
            message = {"key_type": 0, "coordinator_keys": [self.group.name]}
            await self.group.connection.request(calls.FIND_COORDINATOR, message)
            with contextlib.suppress(CoordinatorMissing):
                await self.speak()
            await asyncio.sleep(0.2)


class Group:
    """One group, its members and their connection."""

    def __init__(self, name: str, topic: str, connection: Connection) -> None:
        self.name = name
        self.topic = topic
        self.connection = connection
        self.members: list[Member] = []
        self._names = 0

    def add(self, count: int) -> list[Member]:
        """More members, who have not joined yet."""
        new = []
        for _ in range(count):
            self._names += 1
            new.append(Member(self, f"member-{self._names}"))
        self.members += new
        return new

    def is_whole(self, partitions: int) -> bool:
        """Whether each partition is some member's."""
        held: set[Partition] = set()
        for member in self.members:
            held |= member.assigned
        return len(held) == partitions


async def open_groups(port: int, count: int, topic: str) -> list[Group]:
    settings = read_connection_settings(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=120_000)
    return [
        Group(f"bench-{number}", topic, await Connection.open("127.0.0.1", port, settings, None))
        for number in range(count)
    ]


async def all_at_once(members: Sequence[Member], epoch: int | None = None) -> list[float]:
    """Everybody speaks as soon as the one before has sent; the seconds that each answer took."""
    return list(await asyncio.gather(*(member.speak(epoch) for member in members)))


class Rounds:
    """Heartbeats of all members, spread evenly over the interval, for as long as it is wanted.

    Args:
        groups: whose members speak.
        interval: seconds between two heartbeats of a member.
    """

    def __init__(self, groups: Sequence[Group], interval: float) -> None:
        self._groups = groups
        self._interval = interval
        self.took: list[float] = []

    async def until_whole(self, partitions: int, seconds_max: float) -> float:
        """Speaks until each partition of each group is some member's; returns the seconds since it began."""
        began = time.perf_counter()
        speaking = asyncio.ensure_future(self.run(seconds_max))
        try:
            while not all(group.is_whole(partitions) for group in self._groups):
                if speaking.done():
                    await speaking
                    raise RuntimeError(f"not every partition has a member after {seconds_max} s")
                await asyncio.sleep(0.02)
            return time.perf_counter() - began
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)

    async def run(self, seconds: float) -> None:
        """Speaks for so long."""
        members = [member for group in self._groups for member in group.members]
        # neighbors in time are of different groups, as they would be
        members.sort(key=lambda member: member.name)
        began = time.perf_counter()
        waiting: set[asyncio.Task[None]] = set()
        turn = 0
        while (at := turn * self._interval / len(members)) < seconds:
            await asyncio.sleep(max(0.0, began + at - time.perf_counter()))
            task = asyncio.ensure_future(self._speak(members[turn % len(members)]))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            turn += 1
        if waiting:
            await asyncio.gather(*waiting)

    async def _speak(self, member: Member) -> None:
        self.took.append(await member.speak())
