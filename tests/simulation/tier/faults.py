"""What befalls nodes, brokers and what lies between them, while the actors act."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.harness.batches import batch
from tests.simulation.tier.cluster import BROKERS
from tests.simulation.tier.log import marker
from tests.simulation.tier.network import CLIENTS
from tests.simulation.tier.nodes import SLOTS, STATE_TOPIC, Node

from sharecore.errors import ErrorCode
from sharecore.tier.names import settings_topic
from sharecore.tier.settings.placement_rules import Pin

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld

_PAUSES_S = (0.5, 3.0, 10.0)
_DOWN_S = (0.0, 0.5, 5.0, 20.0)
_REFUSALS = (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.SASL_AUTHENTICATION_FAILED)
_STRANGER = 77
"""The id of a producer that no node has."""
_GROUP = f"group sharecore-{STATE_TOPIC}"
Fault = Callable[["TierWorld", random.Random], Awaitable[None]]


async def run(world: TierWorld) -> None:
    """One fault after the other, some at once, until all is to be quiet; then everything is whole."""
    chance, on = world.chance("faults"), world.plan.features
    chosen = [(name, FAULTS[name]) for name in sorted(FAULTS.keys() & on)]
    cluster = world.cluster
    cluster.late_requests = 0.03 if "late requests" in on else 0.0
    cluster.forgetful = "forgotten producers" in on
    cluster.lost_answers = 0.01 if "lost answers" in on else 0.0
    cluster.late_answers = 0.01 if "late answers" in on else 0.0
    under_way: set[asyncio.Task[None]] = set()
    watch = world.loop.create_task(_keep_up(world))
    # combined faults find what single ones do not; with many of them, little work gets done
    pauses, alone = chance.choice([(1.0, 0.6), (0.3, 0.2)])
    while not world.quiet:
        await asyncio.sleep(chance.choice(_PAUSES_S) * chance.random() * pauses)
        if chosen and not world.quiet:
            _, fault = chance.choice(chosen)
            task = asyncio.ensure_future(fault(world, chance))
            under_way.add(task)
            if chance.random() < alone:
                await asyncio.wait([task])
    if under_way:
        await asyncio.wait(under_way)
    watch.cancel()
    await heal(world)


async def _keep_up(world: TierWorld) -> None:
    """Starts nodes that have ended by themselves, as a service manager does."""
    while True:
        await asyncio.sleep(2.0)
        for node in world.nodes:
            if node.process is None and not node.kept_down:
                node.start()


async def heal(world: TierWorld) -> None:
    """Everything runs, and sees each other."""
    cluster = world.cluster
    world.network.join()
    cluster.refused.clear()
    cluster.pace.slow.clear()
    cluster.late_requests = cluster.lost_answers = cluster.late_answers = 0.0
    for node in range(BROKERS):
        cluster.loop.go_on(cluster.brokers[node].process)
        cluster.start(node)
    for each in world.nodes:
        each.kept_down = False
        each.go_on()
    world.auditor.calm()
    for _ in range(60):
        for each in world.nodes:
            if each.process is None:
                each.start()
        if await world.until(lambda: all(each.up for each in world.nodes), within=2.0):
            break
    else:
        world.story.broken("a node does not start", "though everything is whole")
    world.auditor.calm()


def _a_node(world: TierWorld, chance: random.Random) -> Node:
    """Mostly one that leads something."""
    leads = sorted(set(world.auditor.led.values()))
    if leads and chance.random() < 0.75:
        site = chance.choice(leads)
        return next(node for node in world.nodes if node.site == site)
    return chance.choice(world.nodes)


async def _kill_node(world: TierWorld, chance: random.Random) -> None:
    node = _a_node(world, chance)
    if node.process is None or node.kept_down:
        return
    node.kept_down = True
    world.story.tell("fault", f"{node.site} is killed")
    node.kill()
    await asyncio.sleep(chance.choice(_DOWN_S))
    node.kept_down = False
    if node.process is None:
        node.start()


async def _stop_node(world: TierWorld, chance: random.Random) -> None:
    node = _a_node(world, chance)
    if not node.up or node.paused or node.kept_down:
        return
    node.kept_down = True
    world.story.tell("fault", f"{node.site} is stopped")
    await node.stop()
    world.story.tell("fault", f"{node.site} has ended")
    await asyncio.sleep(chance.choice(_DOWN_S))
    node.kept_down = False
    if node.process is None:
        node.start()


async def _pause_node(world: TierWorld, chance: random.Random) -> None:
    node = _a_node(world, chance)
    process = node.process
    if process is None or node.paused:
        return
    seconds = chance.choice([1.0, 6.0, 12.0, 14.0, 16.0, 20.0, 25.0, 40.0])
    world.story.tell("fault", f"{node.site} stands still for {seconds} s")
    node.pause()
    await asyncio.sleep(seconds)
    if node.process is process:
        world.story.tell("fault", f"{node.site} goes on")
        node.go_on()


async def _move_slots(world: TierWorld, chance: random.Random) -> None:
    """An operator has slots at certain nodes, or a node without any for a while."""
    asked = _a_node(world, chance)
    if not asked.up or asked.paused:
        return
    if chance.random() < 0.7:
        await pin(asked, [slot for slot in range(SLOTS) if chance.random() < 0.5], chance)
        return
    node = chance.choice(world.nodes)
    world.story.tell("fault", f"{node.site} is to have no slots")
    await asked.wish(lambda placement: placement.drain(node.number, drained=True))
    await asyncio.sleep(chance.choice([1.0, 10.0]))
    world.story.tell("fault", f"{node.site} is to have slots again")
    for _ in range(60):
        if await _a_node(world, chance).wish(lambda placement: placement.drain(node.number, drained=False)):
            return
        await asyncio.sleep(1.0)


async def pin(asked: Node, slots: Sequence[int], chance: random.Random) -> None:
    """Slots are to be at some node from now on."""
    node = chance.choice(asked.world.nodes)
    pins = [Pin(slot, node.number) for slot in slots]
    asked.world.story.tell("fault", f"slots {slots} are to be at {node.site}")
    await asked.wish(lambda placement: placement.pin(pins))


async def _part(world: TierWorld, chance: random.Random) -> None:
    """A node is cut off from some brokers or all, or its clients, or brokers from each other's nodes."""
    node = _a_node(world, chance)
    brokers = [broker.site for broker in world.cluster.brokers]
    sites = chance.choice([brokers, brokers, chance.sample(brokers, chance.choice([1, 2])), [CLIENTS]])
    seconds = chance.choice([0.5, 4.0, 12.0, 14.0, 17.0, 20.0, 40.0])
    world.story.tell("fault", f"{node.site} does not see {', '.join(sites)} for {seconds} s")
    for site in sites:
        world.network.part(node.site, site)
    await asyncio.sleep(seconds)
    world.network.join()
    world.story.tell("fault", "all see each other again")


async def _cut(world: TierWorld, chance: random.Random) -> None:
    ends = list(world.network.ends.values())
    for end in chance.sample(ends, min(len(ends), chance.randint(1, 5))):
        silent = chance.random() < world.network.weather.silent
        world.story.tell("fault", f"connection {end.number | 1} is cut{', silently' if silent else ''}")
        world.network.cut(end, silent=silent)


async def _elect(world: TierWorld, chance: random.Random) -> None:
    """Partitions are led by others."""
    cluster = world.cluster
    logs = [log for log in cluster.logs() if log.leader >= 0]
    if not cluster.live:
        return
    for log in chance.sample(logs, min(len(logs), chance.randint(1, 4))):
        leader = chance.choice(cluster.live)
        world.story.tell("fault", f"broker {leader} is elected to lead {log.topic}-{log.index}")
        cluster.elect(log, leader)


async def _move(world: TierWorld, chance: random.Random) -> None:
    if not world.cluster.live:
        return
    # the coordinator of the nodes' group as often as all others together
    key = _GROUP if chance.random() < 0.5 else chance.choice(sorted(world.cluster.coordinators))
    unaware_s = chance.choice([0.0, 20.0])
    world.story.tell("fault", f"the coordinator of {key} moves, which it does not know for {unaware_s:.0f} s")
    world.cluster.move(key, chance.choice(world.cluster.live), unaware_s)


async def _kill_broker(world: TierWorld, chance: random.Random) -> None:
    node = chance.randrange(BROKERS)
    if not world.cluster.brokers[node].up:
        return
    world.story.tell("fault", f"broker {node} is killed")
    world.cluster.kill(node)
    await asyncio.sleep(chance.choice(_DOWN_S))
    world.story.tell("fault", f"broker {node} is started")
    world.cluster.start(node)


async def _pause_broker(world: TierWorld, chance: random.Random) -> None:
    """A broker stands still; some time later others lead in its place, or not."""
    broker = chance.choice(world.cluster.brokers)
    if not broker.up or broker.process.held is not None:
        return
    seconds = chance.choice([1.0, 6.0, 20.0])
    world.story.tell("fault", f"{broker.site} stands still for {seconds} s")
    world.loop.pause(broker.process)
    await asyncio.sleep(min(seconds, 3.0))
    live = [each.node for each in world.cluster.brokers if each.up and each is not broker]
    if seconds > 3.0 and live and chance.random() < 0.7:
        for log in world.cluster.logs():
            if log.leader == broker.node:
                world.cluster.elect(log, chance.choice(live))
    await asyncio.sleep(max(0.0, seconds - 3.0))
    world.loop.go_on(broker.process)
    world.story.tell("fault", f"{broker.site} goes on")


async def _slow_broker(world: TierWorld, chance: random.Random) -> None:
    node = chance.randrange(BROKERS)
    world.story.tell("fault", f"broker {node} is slow")
    world.cluster.pace.slow.add(node)
    await asyncio.sleep(chance.choice([1.0, 10.0]))
    world.cluster.pace.slow.discard(node)


async def _forget_producers(world: TierWorld, chance: random.Random) -> None:
    """Once, or over and over for a while, so that what is sent again meets a cluster that has forgotten."""
    logs = [log for log in world.cluster.logs() if log.topic == STATE_TOPIC and chance.random() < 0.5]
    times = chance.choice([1, 1, 50, 200])
    world.story.tell("fault", f"producers of {len(logs)} slots are forgotten, {times} times")
    for _ in range(times):
        for log in logs:
            log.forget_producers()
        await asyncio.sleep(chance.choice([0.01, 0.1]))


async def _forget_sessions(world: TierWorld, chance: random.Random) -> None:
    broker = chance.choice(world.cluster.brokers)
    broker.sessions.clear()
    world.story.tell("fault", f"{broker.site} forgets its fetch sessions")


async def _lose(world: TierWorld, chance: random.Random) -> None:
    """What all replicas in sync had is lost."""
    logs = [
        log for log in world.cluster.logs() if log.topic in (*world.topics, STATE_TOPIC) and log.leader >= 0
    ]
    if world.cluster.live:
        world.cluster.lose(chance.choice(logs), chance.choice([1, 1, 3, 10]))


async def _intrude(world: TierWorld, chance: random.Random) -> None:
    """Somebody else writes to the tier's own topics: records, and transactions that end with a marker."""
    own = (STATE_TOPIC, settings_topic(STATE_TOPIC))
    logs = [log for log in world.cluster.logs() if log.topic in own and chance.random() < 0.5]
    times = chance.choice([1, 1, 5, 50])
    world.story.tell("fault", f"a stranger writes to {len(logs)} of the tier's partitions, {times} times")
    for _ in range(times):
        for log in logs:
            is_marker = chance.random() < 0.5
            data = marker(_STRANGER, commit=False) if is_marker else batch([b"a stranger's"])
            world.cluster.append(log, data, lambda code, base: None)
        await asyncio.sleep(chance.choice([0.0, 0.01, 0.2]))


async def _refuse(world: TierWorld, chance: random.Random) -> None:
    """A node lacks a right in the nodes' group, or its password is refused, for a while."""
    node, code = _a_node(world, chance), chance.choice(_REFUSALS)
    seconds = chance.choice([0.5, 5.0, 12.0, 40.0])
    world.story.tell("fault", f"{node.site} is refused in the nodes' group ({code.name}) for {seconds} s")
    world.cluster.refused[f"sharecore-{node.number}"] = code
    await asyncio.sleep(seconds)
    world.cluster.refused.pop(f"sharecore-{node.number}", None)
    world.story.tell("fault", f"{node.site} is refused no longer")


async def _double(world: TierWorld, chance: random.Random) -> None:
    """A second process with the id of a node takes its place, does nothing, and is stopped or killed.

    One that is stopped leaves the group only if it has had its place for a session, as `Membership.leave`
    does: the node trusts its last heartbeat for most of that time.
    """
    node, group = _a_node(world, chance), world.cluster.group(_GROUP)
    instance = f"sharecore-{node.number}"
    there = next((each for each in group.members.values() if each.instance_id == instance), None)
    if there is None:
        return
    world.story.tell("fault", f"another process has the id of {node.site}")
    answers: list[Mapping[str, Any]] = []
    joins = SimpleNamespace(
        group_instance_id=instance,
        member_id="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        protocols=[SimpleNamespace(metadata=there.metadata)],
    )
    group.join(joins, answers.append)
    seconds = chance.choice([0.1, 3.0, 30.0])
    await asyncio.sleep(seconds)
    if chance.random() < 0.7 and seconds * 1_000 >= joins.session_timeout_ms:
        world.story.tell("fault", f"the other process with the id of {node.site} leaves")
        # a coordinator that has lost the group in the meantime answers only with an error
        for member_id in [answer["member_id"] for answer in answers if "member_id" in answer]:
            left = SimpleNamespace(member_id=member_id, group_instance_id=instance)
            group.leave(SimpleNamespace(members=[left]), lambda answer: None)


FAULTS: dict[str, Fault] = {
    "node kills": _kill_node,
    "node stops": _stop_node,
    "node pauses": _pause_node,
    "slot moves": _move_slots,
    "partitions": _part,
    "cuts": _cut,
    "leader changes": _elect,
    "coordinator moves": _move,
    "broker kills": _kill_broker,
    "broker pauses": _pause_broker,
    "slow brokers": _slow_broker,
    "forgotten producers": _forget_producers,
    "forgotten sessions": _forget_sessions,
    "strangers": _intrude,
    "refused members": _refuse,
    "doubles": _double,
    "unclean elections": _lose,
}
