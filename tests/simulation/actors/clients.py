"""Our own client and worker, in the same loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sharecore.client import Record, Reject, Release, Retry, ShareConsumer, worker
from sharecore.errors import KafkaError

if TYPE_CHECKING:
    from tests.simulation.world import World


def _settings(world: World, group: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": world.bootstrap,
        "group.id": group,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
    }


async def consumer(world: World, name: str) -> None:
    """A share consumer in explicit or implicit mode, which is closed and opened now and then."""
    chance = world.chance(name)
    while not world.quiet:
        group = chance.choice(list(world.groups))
        explicit = chance.random() < 0.5
        settings = _settings(world, group)
        if explicit:
            settings["share.acknowledgement.mode"] = "explicit"
        try:
            async with ShareConsumer(settings, clock=world.clock) as mine:
                mine.subscribe(list(world.topics))
                for _ in range(chance.randint(3, 40)):
                    if world.quiet:
                        break
                    try:
                        batch = await mine.poll(timeout=chance.choice([0.0, 0.2, 1.0]))
                    except KafkaError as error:
                        world.story.tell(name, f"poll: {error.code.name}")
                        await asyncio.sleep(0.1)
                        continue
                    for record in batch:
                        if explicit:
                            chance.choice([mine.accept, mine.accept, mine.release, mine.reject])(record)
                    await asyncio.sleep(chance.choice([0, 0, 0.1, 1.0]))
                    if explicit and chance.random() < 0.3:
                        await mine.commit_sync(5.0)
        except KafkaError as error:
            world.story.tell(name, f"ends with {error.code.name}")
        await asyncio.sleep(chance.choice([0.0, 1.0]))


async def work(world: World, name: str) -> None:
    """A worker whose handlers succeed, fail, refuse and take their time."""
    chance = world.chance(name)

    retry = Retry(first_seconds=0.2, max_seconds=2.0, give_up_seconds=chance.choice([1.0, 30.0]))

    @worker(world.topics, concurrency=4, retry=retry)
    async def handle(record: Record) -> None:
        await asyncio.sleep(chance.choice([0, 0.01, 0.3, 3.5 if chance.random() < 0.1 else 0]))
        drawn = chance.random()
        if drawn < 0.1:
            raise Release
        if drawn < 0.2:
            raise Reject
        if drawn < 0.3:
            raise RuntimeError("a handler fails")

    group = chance.choice(list(world.groups))
    handle.has_thread = False  # all processes of the world share one loop
    running = asyncio.ensure_future(handle.run(_settings(world, group)))
    await world.until(lambda: world.quiet or running.done())
    handle.stop()
    await running
