"""What each of the four layers holds by itself against a node that writes late, or does not know the time.

The other three are taken away, as planted bugs are; then it too, to see that it was what held.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar
from unittest import mock

import pytest
from tests.simulation.machine import drawn_chance
from tests.simulation.network import Weather
from tests.simulation.story import Story
from tests.simulation.tier.actors.members import Pilot
from tests.simulation.tier.actors.producers import send
from tests.simulation.tier.auditor import TierAuditor
from tests.simulation.tier.canaries import all_count, not_compared
from tests.simulation.tier.cluster import Cluster, Kind
from tests.simulation.tier.network import TierNetwork
from tests.simulation.tier.plan import TierPlan
from tests.simulation.tier.processes import Paced, PacedClock, TierLoop
from tests.simulation.tier.talking import Talk
from tests.simulation.tier.world import TierWorld, simulate_tier
from tests.simulation.wire import Gone

from sharecore.client.settings import read_connection_settings
from sharecore.errors import KafkaError
from sharecore.protocol import ApiKey
from sharecore.tier.slots.claims import SlotHistory
from sharecore.tier.slots.lease import Lease
from sharecore.tier.slots.log import Read, SlotLog
from sharecore.upstream import Administration, ExclusiveWriter, Outlet, Upstream

Outcome = TypeVar("Outcome")

STATE = "state"
COMPARE, CLAIMS, EPOCHS, LEASE = "compare and append", "claims", "producer epochs", "lease in time"


def without(*layers: str) -> contextlib.ExitStack:
    """Takes layers away; that of producer epochs is the cluster's."""
    taken: dict[str, AbstractContextManager[object]] = {
        COMPARE: mock.patch.object(ExclusiveWriter, "_compare", not_compared),
        CLAIMS: mock.patch.object(SlotHistory, "take", all_count),
        LEASE: mock.patch.object(Lease, "holds", True),
    }
    stack = contextlib.ExitStack()
    for layer in layers:
        if layer in taken:
            stack.enter_context(taken[layer])
    return stack


class Owner:
    """Who has a slot, or believes so: a process with a connection to the cluster and the slot's log."""

    def __init__(self, bench: Bench, number: int) -> None:
        self.site = f"node {number}"
        self.process = Paced(self.site)
        self._bench, self._number = bench, number

    async def run(self, work: Callable[[], Awaitable[object]]) -> object:
        """Does something in its process."""
        return await self._bench.loop.create_task(_awaited(work), context=self.process.context)

    async def start(self) -> None:
        settings = read_connection_settings({"bootstrap.servers": self._bench.cluster.bootstrap})
        clock = PacedClock(self._bench.loop, self.process)
        self.upstream = upstream = Upstream(settings, clock)
        await upstream.start()
        await upstream.topics([STATE])
        writer = ExclusiveWriter(Outlet(upstream), STATE, 0, "slot-0")
        admin = Administration(upstream)
        self.log = SlotLog(STATE, 0, self._number, admin, writer, clock, lambda log, error: None)

    async def claim(self, read: Read | None = None) -> list[bytes]:
        """Takes the slot; the values that it reads, or had read before."""
        return [value or b"" for _, _, _, value in await self.log.claim(0, read=read)]

    async def read(self) -> Read:
        """Reads the slot's partition, to claim it later."""
        return await self.log._read()

    async def append(self, value: bytes) -> bool:
        """Writes; whether it is told that this was written."""
        try:
            await self.log.append([(b"\0\1key", value)], 0).ticket
        except KafkaError:
            return False
        return True


async def _awaited(work: Callable[[], Awaitable[object]]) -> object:
    return await work()


class Ended(NamedTuple):
    """How it ended.

    Attributes:
        told: the first owner was told that its late batch was written.
        written: that batch is in the log.
        read: what the third owner reads.
    """

    told: bool
    written: bool
    read: list[bytes]


class Bench:
    """A cluster with a slot, and three who take it one after the other."""

    def __init__(self, kind: Kind) -> None:
        self.loop = TierLoop(1)
        story = Story(self.loop)
        self.network = TierNetwork(self.loop, Weather(), TierAuditor(self.loop, story, 4))
        self.loop.connect = self.network
        chance = random.Random(1)
        self.cluster = Cluster(
            self.loop, self.network, story, chance, kind, lambda broker: Talk(self.cluster, broker)
        )

    async def overtaken(self) -> Ended:
        """What the first owner has sent reaches the cluster behind the claim of the second."""
        log = self.cluster.create(STATE, 1).logs[0]
        self.cluster.told_all()
        first, second, third = (Owner(self, number) for number in (1, 2, 3))
        for owner in (first, second, third):
            await owner.run(owner.start)
        await first.run(first.claim)
        assert await first.run(lambda: first.append(b"in time"))
        self.network.part(first.site, f"broker {log.leader}")
        late = self.loop.create_task(first.run(lambda: first.append(b"late")))
        await asyncio.sleep(0.2)
        assert await second.run(second.claim) == [b"in time"]
        assert await second.run(lambda: second.append(b"the second's"))
        self.network.join()
        told = bool(await late)
        read = await third.run(third.claim)
        assert isinstance(read, list)
        return Ended(told, any(b"late" in batch.data for batch in log.batches), read)

    async def read_too_soon(self) -> list[bytes]:
        """What the first owner is told is written comes between what the second one reads and its claim: what
        that one goes on with.
        """
        self.cluster.create(STATE, 1)
        self.cluster.told_all()
        first, second = Owner(self, 1), Owner(self, 2)
        for owner in (first, second):
            await owner.run(owner.start)
        await first.run(first.claim)
        read = await second.run(second.read)
        assert isinstance(read, Read)
        assert await first.run(lambda: first.append(b"in between"))
        found = await second.run(lambda: second.claim(read))
        assert isinstance(found, list)
        return found


def overtaken(*layers: str) -> Ended:
    """The outcome where these layers are taken away."""
    return played(Bench.overtaken, *layers)


def played(play: Callable[[Bench], Coroutine[Any, Any, Outcome]], *layers: str) -> Outcome:
    """How it ends on a bench where these layers are taken away."""
    with drawn_chance(1), without(*layers):
        bench = Bench(Kind(checks_epochs=EPOCHS not in layers))
        asyncio.set_event_loop(bench.loop)
        try:
            return bench.loop.run_until_complete(play(bench))
        finally:
            bench.loop.bury(lambda: None)
            asyncio.set_event_loop(None)


def test_all_together() -> None:
    assert overtaken() == Ended(told=False, written=False, read=[b"in time", b"the second's"])


def test_compare_and_append_alone() -> None:
    """Nobody is told that anything was written where another has written."""
    alone = overtaken(CLAIMS, EPOCHS, LEASE)
    assert alone.written
    assert not alone.told
    assert overtaken(COMPARE, CLAIMS, EPOCHS, LEASE).told


def test_a_claim_is_compared_too() -> None:
    """No other layer helps who has claimed behind more than it has read."""
    assert played(Bench.read_too_soon, CLAIMS, EPOCHS, LEASE) == [b"in between"]
    assert played(Bench.read_too_soon, COMPARE) == []


def test_claims_alone() -> None:
    """What comes late is void to every reader."""
    alone = overtaken(COMPARE, EPOCHS, LEASE)
    assert alone.written
    assert alone.read == [b"in time", b"the second's"]
    nothing = overtaken(COMPARE, CLAIMS, EPOCHS, LEASE)
    assert nothing.read == [b"in time", b"the second's", b"late"]


def test_producer_epochs_alone() -> None:
    """The cluster itself refuses who was overtaken."""
    alone = overtaken(COMPARE, CLAIMS, LEASE)
    assert not alone.written
    assert not alone.told
    assert overtaken(COMPARE, CLAIMS, EPOCHS, LEASE).written


class Asleep(TierWorld):
    """A node that leads sleeps over a request, while another takes its slots."""

    async def run(self) -> None:
        assert await self.begin()
        first, second = (Pilot(self, name, "group-0", ["second"]) for name in ("first", "second"))
        for number in range(3):
            await send(self, ("second", 0), [b"record-%d" % number])
        await self._leads(first, None)
        session = (await first.look())[0]
        leader = next(node for node in self.nodes if node.node_id == session.node_id)
        leader.pause()
        assert session.wire is not None
        asked = session.wire.send(
            ApiKey.SHARE_FETCH,
            2,
            group_id="group-0",
            member_id="first",
            share_session_epoch=session.session,
            topics=[],
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=20,
            batch_size=10,
        )
        await self._leads(second, leader.site)
        leader.go_on()
        await asyncio.wait([asked], timeout=10)

    async def _leads(self, member: Pilot, site: str | None) -> None:
        """Takes one record at whichever node leads but this one, once there is one."""
        key = "group-0", self.auditor.ledger.ids["second"], 0
        for _ in range(100):
            with contextlib.suppress(Gone):
                for session in await member.look():
                    await session.fetch(max_wait_ms=500, max_records=1, max_bytes=1, batch_size=1)
                if self.auditor.led.get(key, site) != site:
                    return
            member.stale()
            await asyncio.sleep(0.3)
        raise AssertionError("nobody leads")


@pytest.mark.parametrize("kept", [True, False])
def test_lease_in_time_alone(kept: bool) -> None:
    """A node that has slept leases nothing, however little it knows of what happened meanwhile."""
    layers = [COMPARE, CLAIMS, EPOCHS] if kept else [COMPARE, CLAIMS, EPOCHS, LEASE]
    plan = TierPlan(1, 1_000, frozenset({"no epoch checks"}))
    with without(*layers):
        outcome = simulate_tier(plan, Asleep)
    assert {each.kind for each in outcome.violations} == (set() if kept else {"two leases", "two leaders"}), (
        "\n".join(outcome.lines)
    )
