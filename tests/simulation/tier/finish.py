"""The end of a simulation of a tier: the faults have stopped, and every promise is called in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation import letters, waking
from tests.simulation.actors.admins import configure
from tests.simulation.actors.members import ACCEPT
from tests.simulation.ledger import transaction_of
from tests.simulation.queues.settings import PLAIN, RATE
from tests.simulation.tier.actors.members import Pilot, Session, refused
from tests.simulation.tier.actors.producers import send
from tests.simulation.wire import Gone, Wire

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld

_SETTLING_S = 60.0
_WITHIN_S = 120.0
_IDLE_ROUNDS = 4
_WAKE_S, _WAKE_LOCK_S = 3.0, 8.0
_TRIES = 60
_PATIENCE_S = 30.0


async def run(world: TierWorld) -> None:
    """Drains every group, twice: what is there, and what comes then."""
    # silent members' sessions expire, and late nodes get their slots
    await asyncio.sleep(_SETTLING_S)
    for node in world.nodes:
        if trouble := node.trouble:
            world.story.broken("a node does not come back", f"{node.site}: {trouble}")
            return
    await _without_rates(world)
    for group in world.groups:
        for _ in range(2):
            await _drain(world, group)
            if world.story.violations:
                return
            for topic, partitions in world.topics.items():
                for index in range(partitions):
                    await send(world, (topic, index), [b"last"])
    if world.queue_settings:
        await _without_queues(world)
    for group in world.groups:
        await _wake(world, group)
    if letters.FEATURE in world.plan.features:
        await letters.ended(world, world.topics, lambda: _letters(world))


async def _without_rates(world: TierWorld) -> None:
    """Draining a group at its rate would take too long."""
    rated = {group: settings for group, settings in world.queue_settings.items() if settings[RATE]}
    if rated:
        wire = await Wire.open("finish", world.nodes[0].port)
        for group, settings in rated.items():
            # a node may still learn who coordinates, or not reach the cluster yet
            for _ in range(_TRIES):
                if await configure(wire, group, {**settings, RATE: 0}, within=_PATIENCE_S) == 0:
                    break
                await asyncio.sleep(1.0)
        wire.close()


async def _without_queues(world: TierWorld) -> None:
    """Waits of groups would make those longer that come next."""
    wire = await Wire.open("finish", world.nodes[0].port)
    for group in world.queue_settings:
        assert await configure(wire, group, PLAIN, within=_PATIENCE_S) == 0
    wire.close()
    await asyncio.sleep(_PATIENCE_S)


async def _letters(world: TierWorld) -> letters.Letters:
    """The letters that lie in the cluster."""
    there: letters.Letters = {}
    log = world.cluster.log((letters.TOPIC, 0))
    for batch in log.batches if log is not None else ():
        there |= letters.read(batch.data, batch.base, batch.last)
    return there


def _left(world: TierWorld, group: str) -> list[str]:
    """Records that a group should have been given, and was not."""
    ledger = world.auditor.ledger
    found = []
    for (topic_id, index), log in ledger.logs.items():
        name = ledger.names[topic_id]
        if name not in world.topics or ledger.ids[name] != topic_id:
            continue
        share = world.auditor.share((group, topic_id, index))
        for offset in log.answered:
            transaction = transaction_of(log.values[offset])
            committed = transaction is None or (
                transaction in ledger.sure and transaction not in ledger.endless
            )
            if (group in world.auditor.committed and not committed) or offset < log.gone_below:
                continue
            if not share.may_be_over(offset):
                entry = share.entries.get(offset)
                state = "was never delivered" if entry is None else f"was left with {entry.member}"
                found.append(f"{share.where} offset {offset} {state}")
    return found


async def _drain(world: TierWorld, group: str) -> None:
    """One member accepts all there is, until nothing is left."""
    member = Pilot(world, f"drain-{group}", group, list(world.topics))
    until, idle = world.loop.now + _WITHIN_S, 0
    trouble = ""
    while world.loop.now < until and not world.story.violations:
        try:
            sessions = await member.look()
            if sum(len(each.assigned) for each in sessions) < sum(world.topics.values()):
                trouble = f"has {sum(len(each.assigned) for each in sessions)} partitions of its own"
                member.stale()
                await asyncio.sleep(0.3)
                continue
            got = False
            for session in sessions:
                # in an order each fetch brings a record of a partition: the other nodes wait for their turn
                more = True
                while more and world.loop.now < until:
                    if refused(await session.fetch(max_wait_ms=300)):
                        trouble = f"is refused by node {session.node_id}"
                        member.stale()
                    held = {
                        place: [(a, b, ACCEPT) for a, b in sorted(runs)]
                        for place, runs in session.held.items()
                    }
                    session.held.clear()
                    more = bool(held)
                    if held:
                        got = True
                        await session.acknowledge(held)
            idle = 0 if got else idle + 1
            if idle >= _IDLE_ROUNDS and not _left(world, group):
                await member.leave()
                return
        except Gone as gone:
            trouble = f"is not answered: {gone}"
            member.stale()
            await asyncio.sleep(0.3)
    if not world.story.violations:
        left = _left(world, group)[:5]
        text = f"{group} after {_WITHIN_S} s: {'; '.join(left) or trouble}"
        world.story.broken("records are not delivered", text)


async def _wake(world: TierWorld, group: str) -> None:
    """Fetches that wait are answered."""
    pilots = [Pilot(world, f"{who}-{group}", group, ["second"]) for who in ("waits", "holds")]

    def passed() -> bool:
        # if the log has lost its end, the group may have finished the records previously at this offset
        log, topic_id = world.cluster.log(("second", 0)), world.auditor.ledger.ids["second"]
        return log is not None and log.end <= world.auditor.share((group, topic_id, 0)).over_below

    try:
        member, other = [await _served(pilot) for pilot in pilots]
        await waking.look(
            world,
            group,
            member,
            other,
            lambda: send(world, ("second", 0), [b"wake"]),
            within_s=_WAKE_S,
            lock_within_s=_WAKE_LOCK_S,
            excused=passed,
        )
        for pilot in pilots:
            await pilot.leave()
    except Gone as gone:
        world.story.broken("no answer", f"after the faults have stopped: {gone}")


async def _served(pilot: Pilot) -> Session:
    """The session of a member of one partition; raises Gone where nobody leads that."""
    for _ in range(100):
        sessions = await pilot.look()
        if sessions and not refused(await sessions[0].fetch(max_wait_ms=0)):
            # a lock may last longer than members of the world wait for a response
            (await sessions[0].connect()).patience_s = _PATIENCE_S
            return sessions[0]
        pilot.stale()
        await asyncio.sleep(0.3)
    raise Gone("nobody leads")
