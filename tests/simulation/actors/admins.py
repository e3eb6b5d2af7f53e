"""Administrators: of share groups' offsets and settings, and of topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.harness.batches import batch
from tests.simulation.actors.members import Member
from tests.simulation.actors.producers import produced
from tests.simulation.wire import Gone, Wire

from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.world import World


async def describe(wire: Wire, groups: list[str]) -> Any:
    """Start offsets and lags of groups, of every topic."""
    asked = [{"group_id": group, "topics": None} for group in groups]
    return await wire.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked)


async def offsets(world: World, name: str) -> None:
    """Looks at groups, alters their settings, and resets and deletes the offsets of one of its own."""
    chance = world.chance(name)
    group = f"{name}-own"
    world.auditor.lock_s[group] = 3.0
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
                answer = await wire.ask(
                    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
                    0,
                    group_id=group,
                    topics=[{"topic_name": topic, "partitions": [start]}],
                )
                world.story.tell(name, f"sets {group}'s {topic} to {start}: {answer.error_code}")
            elif drawn < 0.6:
                topic = chance.choice(list(world.topics))
                answer = await wire.ask(
                    ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, group_id=group, topics=[{"topic_name": topic}]
                )
                world.story.tell(name, f"deletes {group}'s offsets of {topic}: {answer.error_code}")
            elif drawn < 0.8:
                altered = chance.choice(list(world.groups))
                lock_ms = chance.choice([1500, 3000, 5000])
                world.auditor.lock_altered(altered, lock_ms / 1000)
                config = {
                    "name": "share.record.lock.duration.ms",
                    "config_operation": 0,
                    "value": str(lock_ms),
                }
                await wire.ask(
                    ApiKey.INCREMENTAL_ALTER_CONFIGS,
                    1,
                    resources=[{"resource_type": 32, "resource_name": altered, "configs": [config]}],
                )
                world.story.tell(name, f"sets {altered}'s locks to {lock_ms} ms")
            wire.close()
        except Gone:
            world.story.tell(name, "is not answered")
        await asyncio.sleep(chance.choice([0.2, 1.0, 3.0]))


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


async def topics(world: World, name: str) -> None:
    """Makes topics and deletes them, makes one grow, deletes records."""
    chance, number = world.chance(name), 0
    while not world.quiet:
        try:
            wire = await Wire.open(name)
            drawn = chance.random()
            if drawn < 0.4:
                number += 1
                await _short_life(world, wire, f"{name}-{number}")
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


async def _short_life(world: World, wire: Wire, topic: str) -> None:
    asked = [{"name": topic, "num_partitions": 1, "replication_factor": 1}]
    await wire.ask(ApiKey.CREATE_TOPICS, 7, topics=asked, timeout_ms=5000)
    await wire.ask(ApiKey.PRODUCE, 12, **produced(topic, 0, batch([b"a", b"b"])))
    await asyncio.sleep(0.2)
    await wire.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": topic, "topic_id": None}], timeout_ms=5000)
    world.story.tell("topics", f"{topic} was made and deleted")
