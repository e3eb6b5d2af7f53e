"""Administrators: of share groups, through the nodes; of topics, on the cluster itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

from tests.simulation.actors.admins import configure, describe
from tests.simulation.tier.actors.members import Guide, Pilot, refused
from tests.simulation.tier.actors.producers import send
from tests.simulation.tier.faults import pin
from tests.simulation.tier.nodes import SLOTS
from tests.simulation.tier.state import OWN
from tests.simulation.wire import Gone, Wire
from tests.simulation.world import LOCK_MS

from sharecore.protocol import ApiKey
from sharecore.tier.slots import slot_of_group

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld


async def watch(world: TierWorld, name: str) -> None:
    """Describes the groups now and then; the auditor compares."""
    chance, guide = world.chance(name), Guide(world, name)
    while not world.quiet:
        await asyncio.sleep(chance.choice([0.5, 2.0, 5.0]))
        group = chance.choice(list(world.groups))
        try:
            wire = await Wire.open(name, await guide.coordinator(group))
            await describe(wire, [group])
            wire.close()
        except Gone:
            continue


async def offsets(world: TierWorld, name: str) -> None:
    """Resets and deletes the offsets of a group of its own, and the group; alters settings of others."""
    chance, guide = world.chance(name), Guide(world, name)
    group = f"{name}{OWN}"
    world.auditor.lock_altered(group, 3.0)
    while not world.quiet:
        wire: Wire | None = None
        try:
            wire = await Wire.open(name, await guide.coordinator(group))
            drawn = chance.random()
            if drawn < 0.4:
                await _use(world, Pilot(world, f"{name}-member", group, list(world.topics)))
            elif drawn < 0.6:
                await _reset(world, wire, name, group, chance)
            elif drawn < 0.7:
                answer = await wire.ask(ApiKey.DELETE_GROUPS, 2, within=90.0, groups_names=[group])
                world.story.tell(name, f"deletes {group}: {answer.results[0].error_code}")
            elif drawn < 0.9:
                await _alter(world, wire, name, chance)
        except Gone:
            world.story.tell(name, "is not answered")
        if wire is not None:
            wire.close()
        await asyncio.sleep(chance.choice([0.2, 1.0, 3.0]))


async def _reset(world: TierWorld, wire: Wire, name: str, group: str, chance: random.Random) -> None:
    topic = chance.choice(list(world.topics))
    start = {"partition_index": 0, "start_offset": chance.choice([0, 3, 10])}
    if chance.random() < 0.6:
        topics = [{"topic_name": topic, "partitions": [start]}]
        api, what = ApiKey.ALTER_SHARE_GROUP_OFFSETS, f"sets {group}'s {topic} to {start}"
    else:
        topics = [{"topic_name": topic}]
        api, what = ApiKey.DELETE_SHARE_GROUP_OFFSETS, f"deletes {group}'s offsets of {topic}"
    answer = await wire.ask(api, 0, within=90.0, group_id=group, topics=topics)
    world.story.tell(name, f"{what}: {answer.error_code}")


async def _alter(world: TierWorld, wire: Wire, name: str, chance: random.Random) -> None:
    """Sets how long the locks of a group last, or how often its records are delivered."""
    group = chance.choice(list(world.groups))
    if chance.random() < 0.5:
        setting, value = "share.record.lock.duration.ms", chance.choice([1500, 3000, 5000])
        world.auditor.lock_altered(group, value / 1000)
    else:
        setting, value = "share.delivery.count.limit", chance.choice([3, 4, 6])
        world.auditor.limit_altered(group, value)
    await configure(wire, group, {setting: value}, within=90.0)
    world.story.tell(name, f"sets {group}'s {setting} to {value}")


async def _use(world: TierWorld, member: Pilot) -> None:
    """Joins, takes some records, leaves."""
    sessions = []
    for _ in range(20):
        sessions = await member.look()
        if sessions:
            break
        await asyncio.sleep(0.3)
    for session in sessions:
        for _ in range(2):
            await session.fetch(max_wait_ms=0)
            acks = session.take(world.loop.random)
            if acks and session.session:
                await session.acknowledge(acks)
    await member.leave()


async def topics(world: TierWorld, name: str) -> None:
    """Makes topics on the cluster and deletes them, makes one grow, deletes records."""
    chance, number = world.chance(name), 0
    while not world.quiet:
        drawn = chance.random()
        if drawn < 0.4:
            number += 1
            # without topic ids, a recreated topic looks like the old one
            again = 2 if world.cluster.kind.topic_ids else 1 << 30
            await _short_life(world, f"{name}-{number % again}", chance)
        elif drawn < 0.5 and world.topics["first"] < 3:
            world.topics["first"] += 1
            world.cluster.grow("first", world.topics["first"])
            world.story.tell(name, f"gives first {world.topics['first']} partitions")
        elif drawn < 0.7:
            log = world.cluster.log(("second", 0))
            assert log is not None
            start = log.delete_before(log.start + chance.choice([1, 5, 20]))
            known = world.auditor.ledger.log(world.auditor.ledger.ids["second"], 0)
            known.gone_below = max(known.gone_below, start)
            world.story.tell(name, f"deletes second-0 up to {start}")
            world.cluster.wake()
        await asyncio.sleep(chance.choice([1.0, 3.0]))


async def _short_life(world: TierWorld, topic: str, chance: random.Random) -> None:
    """A topic is made, used and deleted while a member may hold its records; its name is taken again."""
    group = f"{topic}-group"
    # to a node that may not know the topic yet, before its creation or during its use
    moves = "slot moves" in world.plan.features
    moves_in_round = chance.choice([1, 2, 3, 5]) if moves else -1
    if moves and chance.random() < 0.3:
        await pin(chance.choice(world.nodes), [slot_of_group(group, SLOTS)], chance)
        await asyncio.sleep(chance.choice([0.0, 1.0, 2.0, 4.0]))
    world.create(topic, 1)
    world.auditor.lock_altered(group, LOCK_MS / 1000)
    await send(world, (topic, 0), [b"a", b"b"])
    with contextlib.suppress(Gone):
        # a restarted partition redelivers finished records
        wire = await Wire.open(topic, chance.choice(world.nodes).port)
        await configure(wire, group, {"share.auto.offset.reset": "earliest"}, within=20.0)
        wire.close()
    member = Pilot(world, f"{topic}-member", group, [topic])
    for number in range(chance.choice([0, 8, 20, 80])):
        if number == moves_in_round:
            await pin(chance.choice(world.nodes), [slot_of_group(group, SLOTS)], chance)
        try:
            if sessions := await member.look():
                session = sessions[0]
                if refused(await session.fetch(max_wait_ms=200)):
                    member.stale()
                acks = session.take(chance)
                if acks and session.session:
                    await session.acknowledge(acks)
        except Gone:
            world.story.tell(topic, "its member is not answered")
            member.stale()
        await asyncio.sleep(0.3)
        if chance.random() < 0.1:
            await send(world, (topic, 0), [b"more"])
    member.drop()
    world.cluster.delete(topic)
    world.story.tell("topics", f"{topic} was made and deleted")
    await asyncio.sleep(chance.choice([0.2, 8.0]))
