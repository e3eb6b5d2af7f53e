"""What befalls a simulation, while the actors act."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.machine import IO_ERROR, full_disk
from tests.simulation.repair import recovered

from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import random
    from typing import Protocol

    from tests.simulation.loop import SimulatedLoop
    from tests.simulation.network import Network
    from tests.simulation.story import Story
    from tests.simulation.world import World

    class Connected(Protocol):
        """A world whose clients have connections."""

        story: Story

        @property
        def loop(self) -> SimulatedLoop: ...

        @property
        def network(self) -> Network: ...

        def chance(self, name: str) -> random.Random:
            """A source of chance of one's own."""


_PAUSES_S = (0.2, 1.0, 5.0)


async def run(world: World) -> None:
    """One fault after the other, until all is to be quiet; then the machine is whole."""
    chance = world.chance("faults")
    possible = {
        "kills": lambda: _kill(world, power=False),
        "power failures": lambda: _kill(world, power=True),
        "restarts": lambda: _restart(world),
        "failing engines": lambda: _failing_engine(world),
        "cuts": lambda: cut(world),
        "failing disk": lambda: _failing_disk(world),
        "full disk": lambda: _full_disk(world),
        "clock jumps": lambda: _jump(world),
        "slow readers": lambda: stall(world),
        "lying disk": lambda: _lying_disk(world),
        "misdirected writes": lambda: _misdirected(world),
        "standstill": lambda: _standstill(world),
    }
    chosen = [possible[each] for each in sorted(possible.keys() & world.plan.features)]
    if "cold cache" in world.plan.features:
        world.machine.disk.set_cold(200)
    if "bit rot" in world.plan.features:
        world.machine.disk.set_rot(300)
    while not world.quiet and not world.machine.failures:
        await asyncio.sleep(chance.choice(_PAUSES_S) * chance.random())
        if chosen and not world.quiet:
            await chance.choice(chosen)()
    world.loop.interrupt_at = 1 << 62
    await _up(world)


async def _up(world: World) -> None:
    """The machine runs, and its disk is whole."""
    if world.machine.harmed:
        await recovered(world)
    await world.machine.until_up(excused=lambda: world.auditor.sick)
    world.machine.disk.heal()
    world.auditor.sick = False


async def _kill(world: World, *, power: bool) -> None:
    """Ends the broker at any callback, or at any step of its disk."""
    chance, machine = world.chance(f"kill {world.loop.events}"), world.machine
    life = machine.lives

    def kill() -> None:
        if not world.quiet:
            world.story.tell("fault", "the power fails" if power else "the broker is killed")
            machine.kill(power=power)

    if chance.random() < 0.5:
        what = "the power fails" if power else "the broker is killed"
        world.story.tell("fault", f"{what} at a step of the disk")
        machine.power_fails = power
        machine.disk.end_after(chance.randint(1, 12))
    else:
        world.loop.interrupt = kill
        world.loop.interrupt_at = world.loop.events + chance.randint(1, 300)
    for _ in range(20):
        await asyncio.sleep(0.05)
        if not machine.up:
            break
    world.loop.interrupt_at = 1 << 62
    machine.disk.heal()
    await asyncio.sleep(chance.choice([0.0, 0.5, 3.0]))
    await _up(world)
    if machine.lives != life:
        world.story.tell("fault", f"the broker is up again, in its life {machine.lives}")


async def _restart(world: World) -> None:
    world.story.tell("fault", "the broker is stopped")
    await world.machine.stop()
    await _up(world)
    world.story.tell("fault", "the broker is started")


async def _failing_engine(world: World) -> None:
    """The engine of a share partition fails, and the partition is loaded anew."""
    chance, broker = world.chance(f"engine {world.loop.events}"), world.machine.broker
    if broker is None or not world.machine.up:
        return
    by_topic = broker.share.partitions.by_topic().values()
    leaders = [leader for leaders in by_topic for leader in leaders.values() if leader.engine is not None]
    if leaders:
        leader = chance.choice(leaders)
        where = f"{leader.key.group_id} {leader.log.topic}-{leader.key.partition}"
        world.story.tell("fault", f"the engine of {where} fails")
        failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the engine fails")

        def fail() -> None:
            # fetches of its members may be answered at once
            world.auditor.failed((leader.key.group_id, leader.key.topic_id, leader.key.partition))
            leader._check_engine(failure)

        world.machine.tell(fail)


async def cut(world: Connected) -> None:
    """Some connections end; of some only one side knows."""
    chance = world.chance(f"cut {world.loop.events}")
    ends = list(world.network.ends.values())
    for end in chance.sample(ends, min(len(ends), chance.randint(1, 4))):
        silent = chance.random() < world.network.weather.silent
        world.story.tell("fault", f"connection {end.number | 1} is cut{', silently' if silent else ''}")
        end.context.run(partial(end.cut, silent=silent))


async def _failing_disk(world: World) -> None:
    chance = world.chance(f"disk {world.loop.events}")
    operation = chance.choice(["write", "sync", "open", "rename", "read"])
    times = chance.randint(1, 30)
    world.story.tell("fault", f"the disk fails to {operation} {times} times")
    world.auditor.sick = True
    world.machine.disk.fail(operation, IO_ERROR, skip=chance.randrange(5), times=times)
    await asyncio.sleep(chance.choice([0.5, 3.0]))
    await _well(world)


async def _full_disk(world: World) -> None:
    chance = world.chance(f"full {world.loop.events}")
    world.story.tell("fault", "the disk is full")
    world.auditor.sick = True
    full_disk(world.machine, chance.randrange(4000))
    await asyncio.sleep(chance.choice([0.5, 3.0]))
    await _well(world)


async def _well(world: World) -> None:
    """The disk is whole again, and soon nothing tells that it was not."""
    world.story.tell("fault", "the disk is whole")
    await _up(world)
    # pending retries have ended
    world.auditor.sick = True
    await asyncio.sleep(6.0)
    world.auditor.sick = False


async def _lying_disk(world: World) -> None:
    """Some syncs do nothing, and then the power fails."""
    chance = world.chance(f"lie {world.loop.events}")
    times = chance.randint(1, 8)
    world.story.tell("fault", f"the disk says {times} times that it has synced, and has not")
    world.machine.disk.lie(skip=chance.randrange(4), times=times)
    await asyncio.sleep(chance.choice([0.02, 0.2, 2.0]))
    await _kill(world, power=True)


async def _misdirected(world: World) -> None:
    """Writes land where they do not belong; some time later the power fails."""
    chance = world.chance(f"misdirected {world.loop.events}")
    world.story.tell("fault", "the disk writes to a wrong place")
    world.machine.disk.misdirect(skip=chance.randrange(6), times=chance.randint(1, 2))
    await asyncio.sleep(chance.choice([0.02, 0.2, 2.0]))
    world.machine.disk.heal()
    if world.machine.harmed:
        world.story.tell("fault", "the power fails")
        world.machine.kill(power=True)
        await _up(world)


async def stall(world: Connected) -> None:
    """Some clients do not read for a while."""
    chance = world.chance(f"stall {world.loop.events}")
    clients = [end for number, end in world.network.ends.items() if number % 2 == 0]
    for end in chance.sample(clients, min(len(clients), chance.randint(1, 4))):
        seconds = chance.choice([0.2, 1.0, 5.0])
        world.story.tell("fault", f"the client of connection {end.number | 1} reads nothing for {seconds} s")
        end.stall(seconds)


async def _standstill(world: World) -> None:
    """The broker, or an actor, is not given the processor for a while."""
    chance = world.chance(f"standstill {world.loop.events}")
    alive = [process for process in world.loop.processes if process.alive]
    brokers = [process for process in alive if process.name.startswith("broker")]
    process = chance.choice(brokers if brokers and chance.random() < 0.7 else alive)
    seconds = chance.choice([0.02, 0.3, 1.0])
    world.story.tell("fault", f"{process.name} stands still for {seconds} s")
    world.loop.pause(process)
    await asyncio.sleep(seconds)
    world.loop.go_on(process)


async def _jump(world: World) -> None:
    chance = world.chance(f"jump {world.loop.events}")
    jump_ms = chance.choice([-3_600_000, -1_000, 1_000, 7_200_000])
    world.clock.step(jump_ms)
    world.story.tell("fault", f"the wall clock jumps by {jump_ms} ms")
