"""Members of a classic group on an existing cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.interop.upstream.connected import connected

from sharecore.errors import ErrorCode, KafkaError
from sharecore.upstream import Administration, GroupMember, Membership, Upstream


class Node:
    """A member that gets the names of all members."""

    def __init__(self, upstream: Upstream, group: str, name: str, **more: int | str) -> None:
        self.name = name
        self.assignments: list[tuple[int, bytes]] = []
        self.errors: list[ErrorCode] = []
        self._news = asyncio.Event()
        settings: dict[str, Any] = {"session_ms": 2_500, "rebalance_ms": 20_000, "heartbeat_ms": 100}
        self.membership = Membership(upstream, group, self, **{**settings, **more})
        self.membership.start()

    def metadata(self) -> bytes:
        return self.name.encode()

    def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
        everybody = b" ".join(sorted(member.metadata for member in members))
        return {member.member_id: everybody for member in members}

    def assigned(self, generation: int, assignment: bytes) -> None:
        self.assignments.append((generation, assignment))
        self._news.set()

    def lost(self, error: KafkaError) -> None:
        self.errors.append(error.code)
        self._news.set()

    async def until(self, condition: Callable[[Node], bool]) -> None:
        async with asyncio.timeout(15):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    async def sees(self, everybody: bytes) -> None:
        await self.until(lambda node: bool(node.assignments) and node.assignments[-1][1] == everybody)


@in_loop
async def test_members_come_go_and_the_leader_gives_each_its_part(existing: Broker, name: str) -> None:
    async with connected(existing) as here, connected(existing) as there:
        first = Node(here, name, "a")
        await first.sees(b"a")
        second = Node(there, name, "b")
        await first.sees(b"a b")
        await second.sees(b"a b")
        assert [first.membership.leads, second.membership.leads] == [True, False]
        assert first.membership.generation == second.membership.generation == 2
        first.name = "c"
        first.membership.rejoin()
        await second.sees(b"b c")
        await first.membership.leave()
        await second.sees(b"b")
        assert second.membership.leads
        assert second.errors == []
        await second.membership.leave()


@in_loop
async def test_heartbeats_go_on_while_a_join_waits_for_somebody_else(existing: Broker, name: str) -> None:
    """And count, as what the group's coordinator commits meanwhile tells that it is still that."""
    async with connected(existing) as here, connected(existing) as there:
        await Administration(here).create_topic(name, 1, 1, {})
        first = Node(here, name, "a", confirmed_by=name)
        await first.sees(b"a")
        silent = Node(there, name, "b")
        await silent.sees(b"a b")
        await first.sees(b"a b")
        # it disappears silently: the group waits until its session expires
        await silent.membership.close()
        first.name = "c"
        first.membership.rejoin()
        began = here.clock.monotonic_ms()
        longest = 0
        while first.assignments[-1][1] != b"c":
            assert first.membership.lease_from_ms is not None
            longest = max(longest, here.clock.monotonic_ms() - first.membership.lease_from_ms)
            await asyncio.sleep(0.05)
        assert here.clock.monotonic_ms() - began > 1_500
        assert longest < 1_000
        assert first.errors == []
        await first.membership.leave()


@in_loop
async def test_a_leader_that_ends_before_it_has_told_keeps_no_lease_from_others(
    existing: Broker, name: str
) -> None:
    """Nothing can be committed while the coordinator waits for its word, which is a session long."""

    class Ending(Node):
        def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
            if asked:
                asked.append(asyncio.get_running_loop().create_task(self.membership.close()))
                raise RuntimeError("it ends here")
            return super().assign(generation, members)

    class Anew(Node):
        joins = 0

        def metadata(self) -> bytes:
            self.joins += 1
            return b"%d" % self.joins

    asked: list[asyncio.Future[None]] = []
    async with connected(existing) as here, connected(existing) as there:
        await Administration(here).create_topic(name, 1, 1, {})
        session_ms = 7_500
        leader = Ending(there, name, "a", session_ms=session_ms)
        await leader.sees(b"a")
        other = Anew(here, name, "", session_ms=session_ms, confirmed_by=name)
        await other.until(lambda node: bool(node.assignments))
        asked.append(asyncio.get_running_loop().create_future())
        other.membership.rejoin()
        longest = 0
        while b"a" in other.assignments[-1][1]:
            assert other.membership.lease_from_ms is not None
            longest = max(longest, here.clock.monotonic_ms() - other.membership.lease_from_ms)
            await asyncio.sleep(0.05)
        assert len(asked) == 2
        assert longest < session_ms * 2 // 3
        assert other.errors == []
        await other.membership.leave()


@in_loop
async def test_a_static_member_comes_back_to_its_place_and_fences_who_has_it(
    existing: Broker, name: str
) -> None:
    async with connected(existing) as here, connected(existing) as there:
        first, other = Node(here, name, "a", instance_id="1"), Node(there, name, "b", instance_id="2")
        await first.sees(b"a b")
        await other.sees(b"a b")
        generation = other.membership.generation
        async with connected(existing) as again:
            back = Node(again, name, "b", instance_id="2")
            await back.sees(b"a b")
            await other.until(lambda node: bool(node.errors))
            assert other.errors == [ErrorCode.FENCED_INSTANCE_ID]
            await other.membership.close()
            assert back.membership.generation == first.membership.generation == generation
            await back.membership.leave()
            await first.sees(b"a")
        await first.membership.leave()
