"""What befalls a home, while the actors act."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tests.simulation.faults import cut, stall

if TYPE_CHECKING:
    from tests.simulation.home.machines import HomeMachine
    from tests.simulation.home.world import HomeWorld

_PAUSES_S = (1.0, 5.0, 20.0)
_LASTS_S = (0.5, 3.0, 8.0, 15.0)
_OUTAGE_S = (0.5, 3.0, 10.0)
_LEADS_S, _LEADS_ALONE_S, _LEADS_FENCED_S = 60.0, 15.0, 35.0


async def run(world: HomeWorld) -> None:
    """One fault after the other, until all is to be quiet; then all machines run, and reach the bucket."""
    chance = world.chance("faults")
    possible: dict[str, Callable[[HomeWorld], Coroutine[Any, Any, None]]] = {
        "kills": _kill,
        "lost disks": _lose_disk,
        "stops": _stop,
        "pauses": _pause,
        "bucket cuts": _cut_off,
        "bucket outages": _outage,
        "held answers": _hold,
        "absent objects": _miss,
        "cuts": cut,
        "slow readers": stall,
    }
    chosen = [possible[each] for each in sorted(possible.keys() & world.plan.features)]
    # requests wait while nobody leads
    world.auditor.sick = bool(world.plan.features - set(world.plan.actors))
    while not world.quiet:
        await asyncio.sleep(chance.choice(_PAUSES_S) * chance.random())
        if chosen and not world.quiet:
            await chance.choice(chosen)(world)
    world.bucket.heal()
    for machine in world.machines:
        if machine.process is not None:
            world.loop.go_on(machine.process)
        machine.kept_down = False
        machine.start_again()
    if not await world.leader_within(_LEADS_S):
        world.story.broken("nobody leads", f"{_LEADS_S:.0f} s after the faults have stopped")
    # a restore that began under faults takes as long as they made it
    processes = [each.process for each in world.machines if each.process is not None]
    await world.until(lambda: all(each.waits_until <= world.loop.now for each in processes))
    await asyncio.sleep(_LASTS_S[-1])
    world.auditor.sick = False


def _machine(world: HomeWorld, fault: str) -> HomeMachine:
    """Mostly the one that leads."""
    chance = world.chance(f"{fault} {world.loop.events}")
    return world.machine if chance.random() < 0.7 else chance.choice(world.machines)


async def _kill(world: HomeWorld) -> None:
    await _down(world, _machine(world, "kill"), disk=False)


async def _lose_disk(world: HomeWorld) -> None:
    await _down(world, _machine(world, "disk"), disk=True)


async def _down(world: HomeWorld, machine: HomeMachine, *, disk: bool) -> None:
    chance = world.chance(f"down {world.loop.events}")
    machine.kept_down = True

    def kill() -> None:
        world.story.tell("fault", f"{machine.site} {'loses its disk' if disk else 'is killed'}")
        if disk:
            machine.lose_disk(world.chance(f"loss {world.loop.events}"))
        else:
            machine.kill()

    world.loop.interrupt = kill
    world.loop.interrupt_at = world.loop.events + chance.randint(1, 300)
    await world.until(lambda: machine.process is None, within=5.0)
    world.loop.interrupt_at = 1 << 62
    await asyncio.sleep(chance.choice([0.1, 2.0, 12.0]))
    machine.kept_down = False
    machine.start_again()


async def _stop(world: HomeWorld) -> None:
    machine = _machine(world, "stop")
    world.story.tell("fault", f"{machine.site} is stopped")
    machine.kept_down = True
    await machine.stop()
    await asyncio.sleep(world.chance(f"stop {world.loop.events}").choice([0.1, 2.0, 12.0]))
    machine.kept_down = False
    machine.start_again()


async def _pause(world: HomeWorld) -> None:
    machine = _machine(world, "pause")
    process = machine.process
    if process is None:
        return
    seconds = world.chance(f"pause {world.loop.events}").choice(_LASTS_S)
    world.story.tell("fault", f"{machine.site} stands still for {seconds} s")
    world.loop.pause(process)
    await asyncio.sleep(seconds)
    world.loop.go_on(process)


async def _cut_off(world: HomeWorld) -> None:
    machine = _machine(world, "cut off")
    seconds = world.chance(f"cut off {world.loop.events}").choice(_LASTS_S)
    world.story.tell("fault", f"{machine.site} does not reach the bucket for {seconds} s")
    world.bucket.cut_until[machine.node_id] = world.loop.now + seconds
    await asyncio.sleep(seconds)


async def _outage(world: HomeWorld) -> None:
    seconds = world.chance(f"outage {world.loop.events}").choice(_OUTAGE_S)
    world.story.tell("fault", f"nobody reaches the bucket for {seconds} s")
    for machine in world.machines:
        world.bucket.cut_until[machine.node_id] = world.loop.now + seconds
    await asyncio.sleep(seconds)


async def _hold(world: HomeWorld) -> None:
    machine = _machine(world, "hold")
    seconds = world.chance(f"hold {world.loop.events}").choice(_LASTS_S)
    world.story.tell("fault", f"answers of the bucket reach {machine.site} only in {seconds} s")
    world.bucket.held_until[machine.node_id] = world.loop.now + seconds
    await asyncio.sleep(seconds)


async def _miss(world: HomeWorld) -> None:
    seconds = world.chance(f"miss {world.loop.events}").choice(_LASTS_S)
    world.story.tell("fault", f"for {seconds} s reads may miss what is in the bucket")
    world.bucket.absent_until = world.loop.now + seconds
    await asyncio.sleep(seconds)


async def last_outage(world: HomeWorld) -> None:
    """Nobody reaches the bucket for a while: that is no reason to take over."""
    leader, epoch = world.machine, world.machine.epoch
    seconds = world.chance("last outage").uniform(3.0, 15.0)
    world.story.tell("fault", f"nobody reaches the bucket for {seconds:.1f} s")
    for machine in world.machines:
        world.bucket.cut_until[machine.node_id] = world.loop.now + seconds
    await asyncio.sleep(seconds + 2 * _LEADS_ALONE_S)
    if world.machine is not leader or leader.epoch != epoch:
        world.story.broken("a takeover for nothing", f"{world.machine.site} in epoch {world.machine.epoch}")


async def last_takeover(world: HomeWorld) -> None:
    """The leader is lost for good, and another machine leads soon, in some seeds with an empty directory."""
    chance = world.chance("last takeover")
    leader = world.machine
    others = [each for each in world.machines if each is not leader]
    if chance.random() < 0.5:
        for other in others:
            other.kill()
            shutil.rmtree(other.directory, ignore_errors=True)
            other.start()
        await asyncio.sleep(_LASTS_S[-1])
    within_s = _LEADS_FENCED_S if any(each.was_fenced for each in others) else _LEADS_ALONE_S
    world.story.tell("fault", f"{leader.site} is lost for good")
    leader.kept_down = True
    leader.kill()
    if not await world.leader_within(within_s, lambda each: each is not leader):
        world.story.broken("nobody leads", f"{within_s:.0f} s after the loss of the leader")
