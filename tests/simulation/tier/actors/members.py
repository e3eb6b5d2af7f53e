"""Members of share groups of a tier: a place at the coordinator, a share session at each node that leads."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation.actors import members as alone
from tests.simulation.actors.members import RENEW, Member, Place
from tests.simulation.tier.nodes import FIRST_NODE_ID, FIRST_PORT
from tests.simulation.wire import Gone, Wire

from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld

_KNOWN_FOR_S = 5.0
_GROUP = 0
_PATIENCE_S = (5.0, 30.0)


def port_of(node_id: int) -> int:
    """Where a node listens."""
    return FIRST_PORT + node_id - FIRST_NODE_ID


class Guide:
    """Finds out who leads and coordinates what, by asking any node.

    Args:
        topics: those whose leaders it finds.
    """

    def __init__(self, world: TierWorld, name: str, topics: Sequence[str] = ()) -> None:
        self.world = world
        self.name = name
        self.topics = topics
        self.leaders: dict[Place, int] = {}
        self._chance = world.chance(f"{name} guide")
        self._until = 0.0

    def stale(self) -> None:
        """What is known is wrong."""
        self._until = 0.0

    async def _ask(self) -> Wire:
        node = self._chance.choice(self.world.nodes)
        return await Wire.open(self.name, node.port)

    async def coordinator(self, group: str) -> int:
        """The port of a group's coordinator; raises Gone while there is none."""
        wire = await self._ask()
        try:
            answer = await wire.ask(
                ApiKey.FIND_COORDINATOR, 4, within=5.0, key_type=_GROUP, coordinator_keys=[group]
            )
        finally:
            wire.close()
        found = answer.coordinators[0]
        if found.error_code or found.node_id < 0:
            raise Gone(f"no coordinator: {found.error_code}")
        return port_of(found.node_id)

    async def refresh(self) -> None:
        """Learns the leaders where that was long ago; raises Gone."""
        if self.world.loop.now < self._until:
            return
        wire = await self._ask()
        topics = [{"topic_id": None, "name": name} for name in self.topics]
        try:
            answer = await wire.ask(ApiKey.METADATA, 12, within=5.0, topics=topics)
        finally:
            wire.close()
        for topic in answer.topics:
            for part in topic.partitions:
                self.leaders[topic.topic_id, part.partition_index] = part.leader_id
        self._until = self.world.loop.now + _KNOWN_FOR_S


class Session(Member):
    """What a member has at one node."""

    def __init__(self, pilot: Pilot, node_id: int) -> None:
        super().__init__(pilot.world, pilot.name, pilot.group, ())
        self.node_id = node_id
        self._patience = pilot.world.chance(f"{pilot.name} patience {node_id}")

    async def connect(self) -> Wire:
        if self.wire is None or self.wire.closed:
            self.held.clear()
            self.session = 0
            self.wire = await Wire.open(self.name, port_of(self.node_id))
            self.wire.patience_s = self._patience.choice(_PATIENCE_S)
        return self.wire


class Pilot(Member):
    """A member; its heartbeats go to the coordinator, the rest through `sessions`."""

    def __init__(self, world: TierWorld, name: str, group: str, topics: Sequence[str]) -> None:
        super().__init__(world, name, group, topics)
        self.sessions: dict[int, Session] = {}
        self._guide = Guide(world, name, topics)

    async def connect(self) -> Wire:
        if self.wire is None or self.wire.closed:
            self.wire = await Wire.open(self.name, await self._guide.coordinator(self.group))
            self.wire.patience_s = _PATIENCE_S[0]
        return self.wire

    async def look(self) -> list[Session]:
        """Heartbeats when that is due; the sessions at nodes that lead something for it."""
        before = self._epoch
        try:
            await self.beat()
        except Gone:
            if self.wire is not None:
                self.wire.close()
            self._epoch = 0
            raise
        if self._epoch == 0 and self.wire is not None and before == 0:
            # refused: the group may have another coordinator
            self.wire.close()
        await self._guide.refresh()
        places: dict[int, list[Place]] = {}
        for place in self.assigned:
            leader = self._guide.leaders.get(place, -1)
            if leader >= 0:
                places.setdefault(leader, []).append(place)
        for node_id in places:
            if node_id not in self.sessions:
                self.sessions[node_id] = Session(self, node_id)
        found = []
        for node_id, session in self.sessions.items():
            if session.assigned != (now := places.get(node_id, [])):
                # restart with its current assignment
                session.assigned = now
                if session.wire is not None and session.session:
                    session.wire.close()
            if now:
                found.append(session)
        return found

    def stale(self) -> None:
        """Somebody refused what this member believed to be its own."""
        self._guide.stale()

    def drop(self) -> None:
        """Goes without a word."""
        for each in (self, *self.sessions.values()):
            if each.wire is not None:
                each.wire.close()

    async def leave(self) -> None:
        for session in self.sessions.values():
            if session.session:
                await session.fetch(epoch=-1, max_wait_ms=0)
            if session.wire is not None:
                session.wire.close()
        await super().leave()


def refused(answer: object) -> bool:
    """Whether a share fetch failed, or a partition of it."""
    if getattr(answer, "error_code", 0):
        return True
    parts = [part for topic in getattr(answer, "responses", ()) for part in topic.partitions]
    return any(part.error_code for part in parts)


async def member(world: TierWorld, name: str) -> None:
    """A member that means well, and sometimes takes too long, loses its connections or renews."""
    chance = world.chance(name)
    me = Pilot(world, name, chance.choice(list(world.groups)), list(world.topics))
    while not world.quiet:
        try:
            sessions = await me.look()
            if not sessions:
                me.stale()
                await asyncio.sleep(0.3)
                continue
            session = chance.choice(sessions)
            await _round(me, session, chance)
            if chance.random() < 0.02:
                me.drop()
            if chance.random() < 0.01:
                await me.leave()
        except Gone:
            me.stale()
            await asyncio.sleep(0.3)
    try:
        await me.leave()
    except Gone:
        me.drop()
        world.story.tell(name, "could not take its leave")


async def _round(me: Pilot, session: Session, chance: random.Random) -> None:
    """Takes some records at one node, and settles most of them."""
    if refused(await session.fetch(max_wait_ms=chance.choice([0, 100, 500, 2000]))):
        me.stale()
        await asyncio.sleep(0.1)
    if session.held and chance.random() < 0.1 and session.session:
        renewed = {place: [(a, b, RENEW) for a, b in sorted(runs)] for place, runs in session.held.items()}
        await asyncio.sleep(chance.choice([0.0, 1.2]))
        await session.acknowledge(renewed, is_renew_ack=True)
    await asyncio.sleep(chance.choice([0, 0.05, 0.3, 1.0, 4.0 if chance.random() < 0.2 else 0]))
    acks = session.take(chance)
    if acks and session.session:
        if chance.random() < 0.5:
            await session.acknowledge(acks)
        elif refused(await session.fetch(acks=acks, max_wait_ms=chance.choice([0, 300]))):
            me.stale()


async def misfit(world: TierWorld, name: str) -> None:
    """A member that does what no client should; others must not suffer."""
    chance = world.chance(name)
    me = Pilot(world, name, chance.choice(list(world.groups)), list(world.topics))
    tricks = [
        alone._stale,
        alone._twice,
        alone._foreign,
        alone._flood,
        alone._silent,
        alone._garbage,
        alone._limits,
    ]
    while not world.quiet:
        try:
            sessions = await me.look()
            if not sessions:
                me.stale()
                await asyncio.sleep(0.3)
                continue
            session = chance.choice(sessions)
            if refused(await session.fetch(max_wait_ms=chance.choice([0, 300]))):
                me.stale()
                await asyncio.sleep(0.1)
            trick = chance.choice(tricks)
            world.story.tell(name, trick.__name__.strip("_"))
            await trick(session, chance)
        except Gone:
            me.stale()
            await asyncio.sleep(0.3)
    me.drop()
