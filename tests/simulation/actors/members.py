"""Members of share groups that speak the protocol by hand, well and badly."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from tests.simulation.wire import Gone, Wire

from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.auditor import Auditor
    from tests.simulation.loop import SimulatedLoop
    from tests.simulation.world import World

ACCEPT, RELEASE, REJECT, RENEW = b"\1", b"\2", b"\3", b"\4"
Place = tuple[UUID, int]
Acks = Mapping[Place, Sequence[tuple[int, int, bytes]]]
_HEARTBEAT_S = 2.0
_NAMES = ("first_offset", "last_offset", "acknowledge_types")


def _topics(places: Sequence[Place], acks: Acks) -> list[dict[str, Any]]:
    found: dict[UUID, list[dict[str, Any]]] = {}
    for place in dict.fromkeys((*places, *acks)):
        batches = [dict(zip(_NAMES, each, strict=True)) for each in acks.get(place, ())]
        part = {"partition_index": place[1], "acknowledgement_batches": batches}
        found.setdefault(place[0], []).append(part)
    return [{"topic_id": topic_id, "partitions": parts} for topic_id, parts in found.items()]


class Surroundings(Protocol):
    """What members know of their world."""

    @property
    def loop(self) -> SimulatedLoop: ...

    @property
    def auditor(self) -> Auditor: ...

    def chance(self, name: str) -> random.Random:
        """What somebody draws from."""


class Member:
    """One member: its place in the group, its share session, and what it holds."""

    def __init__(self, world: Surroundings, name: str, group: str, topics: Sequence[str]) -> None:
        self.world = world
        self.name = name
        self.group = group
        self.held: dict[Place, list[tuple[int, int]]] = {}
        self.assigned: list[Place] = []
        self.wire: Wire | None = None
        self.session = 0
        self._topics = topics
        self._epoch = 0
        self._beat_at = 0.0

    async def connect(self) -> Wire:
        if self.wire is None or self.wire.closed:
            self.held.clear()
            self.session = 0
            self.wire = await Wire.open(self.name)
        return self.wire

    async def beat(self) -> None:
        """Heartbeats when that is due."""
        now = self.world.loop.now
        if now < self._beat_at:
            return
        self._beat_at = now + (_HEARTBEAT_S if self.assigned else 0.3)
        answer = await (await self.connect()).ask(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            1,
            group_id=self.group,
            member_id=self.name,
            member_epoch=self._epoch,
            subscribed_topic_names=self._topics if self._epoch == 0 else None,
        )
        if answer.error_code:
            self._epoch = 0
            return
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = [
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            ]

    async def fetch(self, *, acks: Acks | None = None, max_wait_ms: int = 500, **fields: Any) -> Any:
        """One ShareFetch; what it brings is in `held`."""
        wire = await self.connect()
        epoch = fields.pop("epoch", self.session)
        places = self.assigned if epoch == 0 or fields.pop("all", False) else []
        answer = await wire.ask(
            ApiKey.SHARE_FETCH,
            2,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=_topics(places, acks or {} if epoch else {}),
            **{
                "max_wait_ms": max_wait_ms,
                "min_bytes": 1,
                "max_bytes": 1 << 20,
                "max_records": 20,
                "batch_size": 10,
            }
            | fields,
        )
        if answer.error_code:
            self.session = 0
            return answer
        self.session = epoch + 1
        for topic in answer.responses:
            for part in topic.partitions:
                if part.acquired_records:
                    held = self.held.setdefault((topic.topic_id, part.partition_index), [])
                    held += [(each.first_offset, each.last_offset) for each in part.acquired_records]
        return answer

    async def acknowledge(self, acks: Acks, *, epoch: int | None = None, **fields: Any) -> Any:
        """One ShareAcknowledge."""
        wire = await self.connect()
        answer = await wire.ask(
            ApiKey.SHARE_ACKNOWLEDGE,
            2,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.session if epoch is None else epoch,
            topics=_topics((), acks),
            **fields,
        )
        self.session = 0 if answer.error_code else self.session + (epoch is None)
        return answer

    async def leave(self) -> None:
        """Ends the session and leaves the group."""
        wire = await self.connect()
        if self.session:
            await self.fetch(epoch=-1, max_wait_ms=0)
        await self.depart()
        self.session = 0
        wire.close()

    async def depart(self) -> None:
        """Leaves the group; its session goes on for a while."""
        await (await self.connect()).ask(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            1,
            group_id=self.group,
            member_id=self.name,
            member_epoch=-1,
            subscribed_topic_names=None,
        )
        self._epoch = 0
        self._beat_at = 0.0

    def take(self, chance: random.Random) -> dict[Place, list[tuple[int, int, bytes]]]:
        """Acknowledges what it holds, each run in some way; some of it is kept and forgotten."""
        acks: dict[Place, list[tuple[int, int, bytes]]] = {}
        for place, runs in self.held.items():
            for first, last in runs:
                drawn = chance.random()
                if drawn < 0.1:
                    continue
                if drawn < 0.3 and last > first:
                    types = bytes(chance.choice([1, 1, 1, 2, 3]) for _ in range(last - first + 1))
                else:
                    types = chance.choice([ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT])
                acks.setdefault(place, []).append((first, last, types))
        self.held.clear()
        return {place: sorted(runs) for place, runs in acks.items()}


async def member(world: World, name: str) -> None:
    """A member that means well, and sometimes takes too long, loses its connection or renews."""
    chance = world.chance(name)
    me = Member(world, name, chance.choice(list(world.groups)), list(world.topics))
    while not world.quiet:
        try:
            await me.beat()
            if not me.assigned:
                await asyncio.sleep(0.1)
                continue
            await me.fetch(max_wait_ms=chance.choice([0, 100, 500, 2000]))
            if me.held and chance.random() < 0.15 and me.session:
                renewed = {place: [(a, b, RENEW) for a, b in sorted(runs)] for place, runs in me.held.items()}
                await asyncio.sleep(chance.choice([0.0, 1.2]))
                await me.acknowledge(renewed, is_renew_ack=True)
                await asyncio.sleep(chance.choice([0.0, 1.2]))
            await asyncio.sleep(chance.choice([0, 0, 0.05, 0.5, 4.0 if chance.random() < 0.2 else 0]))
            acks = me.take(chance)
            if acks and me.session:
                if chance.random() < 0.5:
                    await me.acknowledge(acks)
                else:
                    await me.fetch(acks=acks, max_wait_ms=chance.choice([0, 300]))
            if chance.random() < 0.01 and me.wire is not None:
                me.wire.close()
            if chance.random() < 0.01:
                await me.leave()
        except Gone:
            await asyncio.sleep(0.3)
    try:
        await me.leave()
    except Gone:
        world.story.tell(name, "could not take its leave")


async def misfit(world: World, name: str) -> None:
    """A member that does what no client should; others must not suffer."""
    chance = world.chance(name)
    me = Member(world, name, chance.choice(list(world.groups)), list(world.topics))
    tricks = [_stale, _twice, _foreign, _flood, _silent, _garbage, _limits]
    while not world.quiet:
        try:
            await me.beat()
            if not me.assigned:
                await asyncio.sleep(0.1)
                continue
            await me.fetch(max_wait_ms=chance.choice([0, 300]))
            trick = chance.choice(tricks)
            world.story.tell(name, trick.__name__.strip("_"))
            await trick(me, chance)
        except Gone:
            await asyncio.sleep(0.3)
    if me.wire is not None:
        me.wire.close()


async def _stale(me: Member, chance: random.Random) -> None:
    """An epoch of the session that was, or will be."""
    await me.fetch(epoch=chance.choice([me.session - 1, me.session + 1, 99, 1]), max_wait_ms=0)


async def _twice(me: Member, chance: random.Random) -> None:
    """The same acknowledgement again, with another outcome."""
    acks = me.take(chance)
    if acks and me.session:
        await me.acknowledge(acks)
        other = {place: [(a, b, REJECT) for a, b, _ in runs] for place, runs in acks.items()}
        if me.session:
            await me.acknowledge(other)


async def _foreign(me: Member, chance: random.Random) -> None:
    """Acknowledges what others hold."""
    place = chance.choice(me.assigned)
    share = me.world.auditor.share((me.group, *place))
    others = [offset for offset, entry in share.entries.items() if entry.held and entry.member != me.name]
    if others and me.session:
        offset = chance.choice(others)
        await me.acknowledge({place: [(offset, offset, chance.choice([ACCEPT, RELEASE, REJECT]))]})


async def _flood(me: Member, chance: random.Random) -> None:
    """Many requests at once, whose answers it does not read for a while."""
    wire = await me.connect()
    wire.pause()
    futures = [
        wire.send(
            ApiKey.SHARE_FETCH,
            2,
            group_id=me.group,
            member_id=me.name,
            share_session_epoch=me.session + i,
            topics=[],
            max_wait_ms=chance.choice([0, 200]),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=5,
            batch_size=5,
        )
        for i in range(chance.randint(5, 40))
    ]
    await asyncio.sleep(chance.choice([0.05, 1.0]))
    wire.resume()
    await asyncio.wait(futures, timeout=20)
    for future in futures:
        if future.done() and not future.cancelled():
            future.exception()
    wire.close()


async def _silent(me: Member, chance: random.Random) -> None:
    """Holds what it has until its locks have run out."""
    await asyncio.sleep(chance.choice([1.0, 4.0]))


async def _garbage(me: Member, chance: random.Random) -> None:
    """Bytes that are no request."""
    wire = await me.connect()
    wire.write(chance.randbytes(chance.randint(1, 60)))
    await asyncio.sleep(0.05)
    wire.close()


async def _limits(me: Member, chance: random.Random) -> None:
    """Acknowledges ranges that make no sense."""
    place = chance.choice(me.assigned)
    first = chance.choice([0, 5, 1 << 40, -1])
    if me.session:
        await me.acknowledge({place: [(first, first + chance.choice([-3, 0, 50]), chance.randbytes(2))]})
