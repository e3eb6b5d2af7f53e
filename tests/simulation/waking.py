"""Fetches that wait are answered soon: when a record comes, when a lock runs out, when a session ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tests.simulation.actors.members import ACCEPT, Member

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld
    from tests.simulation.world import World

_RECORD, _LOCK, _SESSION = "a record comes", "a lock runs out", "a session ends"
_WAIT_MS = 20_000


async def look(
    world: World | TierWorld,
    group: str,
    member: Member,
    other: Member,
    produce: Callable[[], Awaitable[object]],
    *,
    within_s: float,
    lock_within_s: float,
    excused: Callable[[], bool] = lambda: False,
) -> None:
    """One member waits for what another one holds, or nobody has yet.

    Args:
        member, other: both have a session with the same partition, of which nothing is left.
        produce: brings a record.
        within_s, lock_within_s: how long the answer may take; where a lock has to run out first.
        excused: the record that came last may have been settled before it came.
    """
    for cause in (_RECORD, _LOCK, _SESSION):
        if cause != _RECORD:
            await produce()
            await other.fetch(max_wait_ms=2000)
        asked = world.loop.now
        waiting = asyncio.ensure_future(member.fetch(max_wait_ms=_WAIT_MS))
        await asyncio.sleep(0.2)
        if cause == _RECORD:
            await produce()
        elif cause == _SESSION:
            await other.fetch(epoch=-1, max_wait_ms=0)
        await waiting
        took = world.loop.now - asked
        right = lock_within_s if cause == _LOCK else within_s
        if (took > right or not member.held) and not excused():
            world.story.broken("a fetch is not woken", f"{group}: {cause}, and the answer took {took:.3f} s")
        held = {place: [(a, b, ACCEPT) for a, b in sorted(runs)] for place, runs in member.held.items()}
        member.held.clear()
        if held:
            await member.acknowledge(held)
