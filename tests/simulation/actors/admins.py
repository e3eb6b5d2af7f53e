"""Administrators: of share groups' offsets and settings, and of topics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.harness.batches import batch
from tests.simulation import letters
from tests.simulation.actors.members import Member
from tests.simulation.actors.producers import produced
from tests.simulation.wire import Gone, Wire

from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld
    from tests.simulation.world import World


async def describe(wire: Wire, groups: list[str]) -> Any:
    """Start offsets and lags of groups, of every topic."""
    asked = [{"group_id": group, "topics": None} for group in groups]
    return await wire.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked)


async def configure(
    wire: Wire, group: str, settings: Mapping[str, object], within: float | None = None
) -> int:
    """Alters settings of a group; returns the error code."""
    configs = [{"name": name, "config_operation": 0, "value": str(value)} for name, value in settings.items()]
    resources = [{"resource_type": 32, "resource_name": group, "configs": configs}]
    answer = await wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, within=within, resources=resources)
    code: int = answer.responses[0].error_code
    return code


async def set_up(world: World | TierWorld, wire: Wire, group: str, isolation: str) -> None:
    """Gives a group what it has from the beginning, and tells the auditor."""
    settings = {"share.auto.offset.reset": "earliest", "share.isolation.level": isolation}
    if isolation == "read_committed":
        world.auditor.committed.add(group)
    if group == letters.GROUP and letters.FEATURE in world.plan.features:
        settings |= letters.GROUP_SETTINGS
        world.auditor.lags.lettered.add(group)
    settings |= {name: str(value) for name, value in world.queue_settings.get(group, {}).items()}
    code = await configure(wire, group, settings)
    assert code == 0, (group, code)


async def watch(world: World, name: str) -> None:
    """Describes the groups now and then; the auditor compares."""
    chance = world.chance(name)
    wire: Wire | None = None
    while not world.quiet:
        await asyncio.sleep(chance.choice([0.1, 0.5, 2.0]))
        try:
            if wire is None or wire.closed:
                wire = await Wire.open(name)
            await describe(wire, list(world.groups))
        except Gone:
            wire = None
    if wire is not None:
        wire.close()


async def offsets(world: World, name: str) -> None:
    """Looks at groups, alters their settings, and resets and deletes the offsets of one of its own."""
    chance = world.chance(name)
    group = f"{name}-own"
    world.auditor.lock_altered(group, 3.0)
    member = Member(world, f"{name}-member", group, list(world.topics))
    while not world.quiet:
        try:
            wire = await Wire.open(name)
            await describe(wire, [*world.groups, group])
            drawn = chance.random()
            if drawn < 0.3:
                await _use(world, member)
            elif drawn < 0.5:
                topic = chance.choice(list(world.topics))
                start = {"partition_index": 0, "start_offset": chance.choice([0, 3, 10])}
                stays = asyncio.create_task(_fetch_on(world, member)) if chance.random() < 0.5 else None
                if stays is not None:
                    await asyncio.sleep(chance.choice([0.5, 1.0]))
                answer = await wire.ask(
                    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
                    0,
                    group_id=group,
                    topics=[{"topic_name": topic, "partitions": [start]}],
                )
                world.story.tell(name, f"sets {group}'s {topic} to {start}: {answer.error_code}")
                await describe(wire, [group])
                if stays is not None:
                    await stays
            elif drawn < 0.6:
                topic = chance.choice(list(world.topics))
                answer = await wire.ask(
                    ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=[{"topic_name": topic}]
                )
                world.story.tell(name, f"deletes {group}'s offsets of {topic}: {answer.error_code}")
            elif drawn < 0.65:
                answer = await wire.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[group])
                world.story.tell(name, f"deletes {group}: {answer.results[0].error_code}")
            elif drawn < 0.85:
                await _alter(world, wire, name, chance)
            wire.close()
        except Gone:
            world.story.tell(name, "is not answered")
        await asyncio.sleep(chance.choice([0.2, 1.0, 3.0]))


async def _alter(world: World, wire: Wire, name: str, chance: random.Random) -> None:
    """Sets how long the locks of a group last, or how often its records are delivered."""
    group = chance.choice(list(world.groups))
    if chance.random() < 0.5:
        setting, value = "share.record.lock.duration.ms", chance.choice([1500, 3000, 5000])
        world.auditor.lock_altered(group, value / 1000)
    else:
        setting, value = "share.delivery.count.limit", chance.choice([3, 4, 6])
        world.auditor.limit_altered(group, value)
    await configure(wire, group, {setting: value})
    world.story.tell(name, f"sets {group}'s {setting} to {value}")


async def _use(world: World, member: Member) -> None:
    """Joins, takes some records, leaves."""
    for _ in range(20):
        await member.beat()
        if member.assigned:
            break
        await asyncio.sleep(0.3)
    for _ in range(3):
        await member.fetch(max_wait_ms=0)
        acks = member.take(world.loop.random)
        if acks and member.session:
            await member.acknowledge(acks)
    await member.leave()


async def _fetch_on(world: World, member: Member) -> None:
    """Leaves the group while its session goes on, and fetches and settles as if it had not."""
    try:
        for _ in range(10):
            await member.beat()
            if member.assigned:
                break
            await asyncio.sleep(0.1)
        await member.depart()
        for _ in range(200):
            answer = await member.fetch(max_wait_ms=0)
            acks = member.take(world.loop.random)
            if acks and member.session:
                await member.acknowledge(acks)
            if answer.error_code:
                break
            await asyncio.sleep(0.005)
        await member.leave()
    except Gone:
        world.story.tell(member.name, "is not answered")


async def topics(world: World, name: str) -> None:
    """Makes topics and deletes them, makes one grow, deletes records."""
    chance, number = world.chance(name), 0
    while not world.quiet:
        try:
            wire = await Wire.open(name)
            drawn = chance.random()
            if drawn < 0.4:
                number += 1
                await _short_life(world, wire, f"{name}-{number % 3}", chance)
            elif drawn < 0.5 and world.topics["first"] < 4:
                count = world.topics["first"] + 1
                answer = await wire.ask(
                    ApiKey.CREATE_PARTITIONS,
                    3,
                    topics=[{"name": "first", "count": count, "assignments": None}],
                    timeout_ms=5000,
                    validate_only=False,
                )
                if answer.results[0].error_code == 0:
                    world.topics["first"] = count
                    world.story.tell(name, f"gives first {count} partitions")
            elif drawn < 0.6:
                offset = chance.choice([1, 5, 20])
                part = {"partition_index": 0, "offset": offset}
                answer = await wire.ask(
                    ApiKey.DELETE_RECORDS,
                    2,
                    topics=[{"name": "second", "partitions": [part]}],
                    timeout_ms=5000,
                )
                world.story.tell(name, f"deletes second-0 up to {offset}")
            wire.close()
        except Gone:
            world.story.tell(name, "is not answered")
        await asyncio.sleep(chance.choice([0.5, 2.0]))


async def _short_life(world: World, wire: Wire, topic: str, chance: random.Random) -> None:
    """A topic is made, used and deleted while a member may hold its records; its name is taken again."""
    asked = [{"name": topic, "num_partitions": 1, "replication_factor": 1}]
    await wire.ask(ApiKey.CREATE_TOPICS, 7, topics=asked, timeout_ms=5000)
    await wire.ask(ApiKey.PRODUCE, 12, **produced(topic, 0, batch([b"a", b"b"])))
    if chance.random() < 0.5:
        member = Member(world, f"{topic}-member", f"{topic}-group", [topic])
        for _ in range(4):
            await member.beat()
            await asyncio.sleep(0.3)
        if member.assigned:
            await member.fetch(max_wait_ms=0)
        if member.wire is not None and chance.random() < 0.5:
            member.wire.close()
    await asyncio.sleep(0.2)
    await wire.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": topic, "topic_id": None}], timeout_ms=5000)
    world.story.tell("topics", f"{topic} was made and deleted")
