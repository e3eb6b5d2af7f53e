"""Who reads a slot while another still writes it reads what the cluster has, not what it had."""

from __future__ import annotations

import asyncio

from tests.simulation.machine import drawn_chance
from tests.simulation.tier.cluster import Kind
from tests.simulation.tier.test_layers import STATE, Bench, Owner

from sharecore.tier.slots.log import Right
from sharecore.tier.slots.successor import Successor
from sharecore.upstream import Fetcher


class Awaiting(Owner):
    """Who awaits the slot."""

    async def await_release(self) -> list[bytes]:
        """Takes the slot once it is given up; the values that it has read."""
        self.successor = Successor(self.log, lambda: Fetcher(self.upstream, committed=False))
        read = await self.successor.released(1)
        return [value or b"" for _, _, _, value in await self.log.claim(1, Right.GIVEN, read)]


async def _inherited(bench: Bench) -> list[bytes]:
    """What an successor has read of a slot whose newest record was lost and written over."""
    log = bench.cluster.create(STATE, 1).logs[0]
    bench.cluster.told_all()
    owner, successor = Owner(bench, 1), Awaiting(bench, 2)
    for each in (owner, successor):
        await each.run(each.start)
    await owner.run(owner.claim)
    assert await owner.run(lambda: owner.append(b"kept"))
    assert await owner.run(lambda: owner.append(b"lost"))
    inheriting = bench.loop.create_task(successor.run(successor.await_release))
    await asyncio.sleep(1)
    bench.cluster.lose(log, 1)
    assert not await owner.run(lambda: owner.append(b"refused")), "the cluster knows of no batch before it"
    await owner.run(owner.claim)
    assert await owner.run(lambda: owner.append(b"new"))
    await owner.run(lambda: owner.log.release(2))
    read = await asyncio.wait_for(inheriting, 60)
    assert isinstance(read, list)
    assert await successor.run(lambda: successor.append(b"the successor's"))
    return read


def test_an_heir_reads_all_again_where_the_cluster_has_lost_some_of_it() -> None:
    with drawn_chance(1):
        bench = Bench(Kind())
        asyncio.set_event_loop(bench.loop)
        try:
            read = bench.loop.run_until_complete(_inherited(bench))
        finally:
            bench.loop.bury(lambda: None)
            asyncio.set_event_loop(None)
    assert read == [b"kept", b"new"]
