"""One simulation of a tier: a cluster, nodes in front of it, those who use both, and what befalls them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import mock

from tests.simulation import letters
from tests.simulation.actors import clients
from tests.simulation.actors.admins import set_up
from tests.simulation.life import Outcome, lived, quiet
from tests.simulation.loop import Clock
from tests.simulation.queues import settings as queues
from tests.simulation.queues.windows import small_windows
from tests.simulation.story import Story
from tests.simulation.tier import faults, finish
from tests.simulation.tier.actors import admins, members, producers
from tests.simulation.tier.auditor import TierAuditor
from tests.simulation.tier.canaries import TIER_CANARIES
from tests.simulation.tier.cluster import CLUSTER_ID, Cluster, Kind
from tests.simulation.tier.log import Log
from tests.simulation.tier.network import TierNetwork, site_of
from tests.simulation.tier.nodes import Node, in_simulation
from tests.simulation.tier.plan import TierPlan
from tests.simulation.tier.probe import TierProbe
from tests.simulation.tier.processes import NodeClocks, TierLoop
from tests.simulation.tier.state import StateAudit, slot_of
from tests.simulation.tier.talking import Talk
from tests.simulation.wire import Gone, Wire
from tests.simulation.world import LIMIT, LOCK_MS

from sharecore.partition.leader import SharePartition
from sharecore.upstream.metadata import made_id

_NODES = 3
_SETTINGS_S = 30.0
"""Nodes know settings by then."""
_EVENTS_AFTER = 400_000
_START_S = 60.0
_ACTORS_END_S = 240.0


class TierWorld:
    """What actors act in.

    Attributes:
        quiet: the actors have stopped, or are about to.
        topics: those to produce to, with their number of partitions.
        groups: share groups, with their isolation level.
        queue_settings: of those that have some.
        transactions: producers whose transaction somebody will end.
        nodes: of the tier.
    """

    def __init__(self, plan: TierPlan, loop: TierLoop) -> None:
        self.plan = plan
        self.loop = loop
        self.quiet = False
        self.story = Story(loop)
        self.auditor = TierAuditor(loop, self.story, LIMIT)
        self.network = TierNetwork(loop, plan.weather, self.auditor)
        loop.connect = self.network
        self.clock = Clock(loop)
        chance, on = self.chance("settings"), plan.features
        kind = Kind(
            topic_ids="no topic ids" not in on,
            checks_epochs="no epoch checks" not in on,
            deletes_records="no record deletion" not in on,
        )
        self.cluster = Cluster(
            loop,
            self.network,
            self.story,
            self.chance("cluster"),
            kind,
            lambda broker: Talk(self.cluster, broker),
        )
        self.cluster.on_append, self.cluster.on_cut = self._appended, self._cut
        self.state = StateAudit(self)
        self.auditor.settled = self.state.settled
        self.groups = {f"group-{i}": chance.choice(["read_committed", "read_uncommitted"]) for i in range(2)}
        self.topics = {"first": 2, "second": 1}
        self.queue_settings = {
            group: queues.drawn_for_tier(self.chance(f"queue {group}"), on)
            for group in self.groups
            if on & set(plan.queues)
        }
        for group in self.queue_settings:
            self.auditor.queues.watch(group)
        self.auditor.queues.clock = NodeClocks(loop, drifts="clock drift" in on)
        self.transactions: set[int] = set()
        settings = letters.BROKER_SETTINGS | {
            "group.share.record.lock.duration.ms": str(LOCK_MS),
            "group.share.delivery.count.limit": str(LIMIT),
            "group.share.partition.max.record.locks": str(chance.choice([100, 200, 2000])),
            "share.coordinator.snapshot.update.records.per.snapshot": str(chance.choice([0, 5, 500])),
            "share.coordinator.append.linger.ms": str(chance.choice([-1, 0, 5])),
            # long enough for a write that is retried behind a partition to be reported as written
            "share.coordinator.write.timeout.ms": str(chance.choice([5_000, 30_000, 30_000])),
            "sharecore.tier.ahead.bytes": "65536",
        }
        self.cache_bytes = chance.choice([2_000, 100_000])
        self.nodes = [Node(self, number, settings) for number in range(1, _NODES + 1)]
        self.bootstrap = ",".join(f"node:{node.port}" for node in self.nodes)
        self.probe = TierProbe(self)

    def chance(self, name: str) -> random.Random:
        """A source of chance of one's own, so that others may be left out."""
        return random.Random(f"{self.plan.seed}/{name}")

    def create(self, topic: str, partitions: int) -> None:
        """A topic upstream."""
        made = self.cluster.create(topic, partitions)
        topic_id = made.topic_id if self.cluster.kind.topic_ids else made_id(CLUSTER_ID, topic)
        self.auditor.ledger.created(topic, topic_id)

    # upstream

    def _appended(self, log: Log, index: int) -> None:
        self.state.appended(log, index)

    def _cut(self, log: Log, before: int, lost: bool) -> None:
        self.state.cut(log, lost=lost)
        ledger = self.auditor.ledger
        if lost and log.topic in self.topics:
            self.auditor.lost_records(ledger.ids[log.topic], log.index, log.end, before)
            ledger.lose_ends()
            for producer_id in log.open.keys() - self.transactions:
                place = log.topic, log.index
                self.loop.create_task(producers.end(self, place, producer_id, commit=False))
        elif lost:
            self.auditor.lost_state(lambda key: slot_of(key) == log.index)

    # the whole life

    async def run(self) -> None:
        """The whole life."""
        if not await self.begin():
            return
        tasks = [self.loop.create_task(self._guard(name, work)) for name, work in self._actors()]
        trouble = self.loop.create_task(faults.run(self))
        await self.until(lambda: self.loop.events >= self.plan.events or bool(self.story.violations))
        self.quiet = True
        await trouble
        self.story.tell("simulation", "the faults stop")
        if not self.story.violations:
            await asyncio.wait(tasks, timeout=_ACTORS_END_S)
        for task in tasks:
            if not task.done() and not self.story.violations:
                self.story.broken("an actor does not come to an end", str(task.get_coro()))
            elif task.done() and not task.cancelled() and task.exception() is not None:
                error = task.exception()
                lines = traceback.format_exception(error)
                self.story.tell("error", "".join(lines))
                self.story.broken("an actor fails", f"{type(error).__name__}: {error}")
            task.cancel()
        if not self.story.violations:
            await finish.run(self)
        self.probe.look()

    async def begin(self) -> bool:
        """Makes topics, starts nodes, tells them settings; says whether they came up."""
        for topic, partitions in self.topics.items():
            self.create(topic, partitions)
        self.cluster.told_all()
        for node in self.nodes:
            node.start()
        if not await self.until(lambda: all(node.up for node in self.nodes), within=_START_S):
            self.story.broken("a node does not start", "though nothing has happened")
            return False
        await self.set_up()
        return True

    async def until(self, so: Callable[[], bool], *, within: float = 1e9) -> bool:
        """Looks now and then whether something is so."""
        end = self.loop.now + within
        while not so():
            if self.loop.now > end:
                return False
            await asyncio.sleep(0.05)
        return True

    async def _guard(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Gone:
            self.story.tell(name, "gives up")

    async def set_up(self) -> None:
        """Settings of groups."""
        for group, isolation in self.groups.items():
            self.auditor.lock_altered(group, LOCK_MS / 1000)
            wire = await Wire.open("set-up", self.nodes[0].port)
            await set_up(self, wire, group, isolation)
            wire.close()
        for group, settings in self.queue_settings.items():
            if await self.until(partial(self._is_known, group, settings), within=_SETTINGS_S):
                self.auditor.queues.groups[group].known()

    def _is_known(self, group: str, settings: Mapping[str, object]) -> bool:
        """Whether all nodes have the settings of a group; they come in one record."""
        names = (
            "share.ordering",
            "share.retry.backoff.ms",
            "share.deliver.at.header",
            "share.record.ttl.ms",
            "share.member.max.record.locks",
            queues.RATE,
        )
        configs = [node.broker.share.partitions._group_config(group) for node in self.nodes if node.broker]
        return all(
            getattr(config, name.replace(".", "_")) == settings[name] for config in configs for name in names
        )

    def _actors(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        on = self.plan.features
        found: list[tuple[str, Coroutine[Any, Any, None]]] = [
            ("plain", producers.plain(self, "plain")),
            ("watch", admins.watch(self, "watch")),
        ]
        kinds: dict[str, list[Callable[[Any, str], Coroutine[Any, Any, None]]]] = {
            "transactions": [producers.transactional] * 2,
            "members": [members.member] * 4,
            "misfits": [members.misfit],
            "consumers": [clients.consumer] * 2,
            "offset administrators": [admins.offsets],
            "topic administrators": [admins.topics] * 2,
        }
        if not on & {"members", "consumers"}:
            kinds["plain"] = [members.member]
        for feature, makers in kinds.items():
            if feature in on or feature == "plain":
                for number, make in enumerate(makers):
                    name = f"{feature.rstrip('s')}-{number}"
                    found.append((name, make(self, name)))
        return found


def simulate_tier(plan: TierPlan, make: type[TierWorld] = TierWorld) -> Outcome:
    """Runs one simulation to its end, or to the first violation.

    Args:
        make: the world.
    """
    with quiet(plan.seed):
        loop = TierLoop(plan.seed)
        world = make(plan, loop)
        patches = [
            TIER_CANARIES[plan.canary].plant() if plan.canary else contextlib.nullcontext(),
            _loads_told(world),
            in_simulation(world.network, world.cache_bytes),
            small_windows() if world.queue_settings else contextlib.nullcontext(),
        ]
        return lived(plan, loop, world, patches, events_after=_EVENTS_AFTER)


@contextlib.contextmanager
def _loads_told(world: TierWorld) -> Iterator[None]:
    """The auditor is told when a node begins to lead a share partition, with what was written."""
    begin = SharePartition._begin

    def told(self: SharePartition, state: Any) -> None:
        key = self.key.group_id, self.key.topic_id, self.key.partition
        site = site_of(contextvars.copy_context())
        if world.state.may_lead(key, next(node for node in world.nodes if node.site == site)):
            world.auditor.led_by(key, site, state.state.start_offset)
            world.auditor.share(key).taken_over_until = world.state.waits_until(key)
            world.state.loaded(key, state.state)
        begin(self, state)

    with mock.patch.object(SharePartition, "_begin", told):
        yield
