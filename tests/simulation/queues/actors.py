"""Producers whose records have keys and times, and an administrator who changes queue settings."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.harness.batches import keyed_batch
from tests.simulation.actors.admins import configure
from tests.simulation.actors.producers import produced
from tests.simulation.queues.settings import DELIVER_AT, KEY, TTL, drawn
from tests.simulation.wire import Gone, Wire

from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.world import World

_KEYS: tuple[bytes | None, ...] = (b"hot", b"hot", b"hot", b"a", b"b", b"c", b"", None)
_TOPICS = ("first", "first", "second", "second", "compacted", "short")


async def keyed(world: World, name: str) -> None:
    """Produces records with keys, one of them hot, with delivery times and times to live."""
    chance, number = world.chance(name), 0
    wire: Wire | None = None
    while not world.quiet:
        try:
            if wire is None or wire.closed:
                wire = await Wire.open(name)
            values = [b"%s-%d" % (name.encode(), number + i) for i in range(chance.randint(1, 5))]
            number += len(values)
            topic = chance.choice(_TOPICS)
            keys = [chance.choice(_KEYS) for _ in values]
            if topic == "compacted":
                keys = [key or b"some" for key in keys]
            now_ms = world.clock.now_ms()
            records = keyed_batch(
                list(zip(keys, values, strict=True)),
                timestamps=[now_ms] * len(values),
                headers=times_of_records(chance, now_ms),
                gzipped=chance.random() < 0.2,
            )
            index = chance.randrange(world.topics[topic])
            await wire.ask(ApiKey.PRODUCE, 12, **produced(topic, index, records))
        except Gone:
            wire = None
        await asyncio.sleep(chance.choice([0.01, 0.05, 0.3]))


def times_of_records(
    chance: random.Random, now_ms: int, delays_ms: Sequence[int] = (-1_000, 200, 1_500, 5_000)
) -> list[tuple[str, bytes | None]]:
    """Return headers with a key, a delivery time and a time to live, or without some of them."""
    found: list[tuple[str, bytes | None]] = []
    if chance.random() < 0.3:
        found.append((KEY, chance.choice([b"x", b"y", None])))
    if chance.random() < 0.25:
        due = now_ms + chance.choice(delays_ms)
        found.append((DELIVER_AT, chance.choice([b"%d" % due, b"%d" % due, b"soon"])))
    if chance.random() < 0.1:
        found.append((TTL, chance.choice([b"1500", b"6000", b"-1"])))
    return found


async def administer(world: World, name: str) -> None:
    """Changes the queue settings of groups while they are in use."""
    chance = world.chance(name)
    while not world.quiet:
        await asyncio.sleep(chance.choice([0.5, 2.0, 4.0]))
        group = chance.choice(list(world.groups))
        settings = drawn(chance, world.plan.features, world.clock.now_ms())
        try:
            wire = await Wire.open(name)
            code = await configure(wire, group, settings)
            world.story.tell(name, f"sets {group} to {_told(settings)}: {code}")
            wire.close()
        except Gone:
            world.story.tell(name, "is not answered")


def _told(settings: dict[str, object]) -> str:
    return ", ".join(f"{name.removeprefix('share.')}={value}" for name, value in settings.items())
