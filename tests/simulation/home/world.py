"""One simulation of a home: two machines, the bucket between them, who uses them, and what befalls them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, cast
from unittest import mock
from uuid import UUID

from tests.simulation import finish
from tests.simulation.home import faults
from tests.simulation.home.auditor import HomeAuditor
from tests.simulation.home.bucket import EvictedWay, SimulatedBucket
from tests.simulation.home.canaries import HOME_CANARIES
from tests.simulation.home.machines import HomeLoop, HomeMachine, HomeProcess
from tests.simulation.home.network import HomeNetwork
from tests.simulation.home.plan import HomePlan
from tests.simulation.home.seams import in_simulation
from tests.simulation.life import Outcome, lived, quiet, working_directory
from tests.simulation.loop import Clock, process_of
from tests.simulation.network import End
from tests.simulation.probe import Probe
from tests.simulation.story import Story
from tests.simulation.wire import Gone
from tests.simulation.world import LIMIT, LOCK_MS, actors_of, create_all

from sharecore import _core
from sharecore.partition.leader import SharePartition
from sharecore.sharestate import shard

_MACHINES = 2
_EVENTS_AFTER = 800_000
_START_S = 60.0
_ACTORS_END_S = 240.0
_LOOK_S = 0.05
_PRUNE_RECORDS = 100
"""With a bound: share state is pruned after so many records, so that segments may leave the disk."""
_SETTINGS = {
    "sharecore.durability": "bucket",
    "sharecore.bucket.url": "file:///bucket",
    "offsets.topic.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.share.min.record.lock.duration.ms": "1000",
    "log.retention.check.interval.ms": "20000",
    "log.cleaner.backoff.ms": "15000",
}
_ANSWER_S = 1.0
"""An answer is written so long before it is sent, at most."""


class HomeWorld:
    """What actors act in.

    Attributes:
        quiet: the actors have stopped, or are about to.
        topics: those to produce to, with their number of partitions.
        groups: share groups, with their isolation level.
        machines: all of them; they start as standbys.
        bucket: what they share.
        store_options: of each store.
        bootstrap: where clients begin.
    """

    attempts = 3000

    def __init__(self, plan: HomePlan, loop: HomeLoop, directory: Path) -> None:
        self.plan = plan
        self.loop = loop
        self.quiet = False
        self.story = Story(loop)
        drifts = "clock drift" in plan.features
        self.auditor = HomeAuditor(
            loop, self.story, LIMIT, self._extent, is_proven=self._is_proven, drifts=drifts
        )
        self.auditor.ledger.compacted.add("compacted")
        self.network = HomeNetwork(self, plan.weather, self.auditor)
        loop.connect = self.network
        self.clock = Clock(loop)
        # a batch may be tried again for so long that its records are old when it is confirmed
        self.clock.jumped = True
        self.queue_settings: dict[str, Any] = {}
        chance = self.chance("settings")
        self.groups = {f"group-{i}": chance.choice(["read_committed", "read_uncommitted"]) for i in range(2)}
        self.topics = {"first": 2, "second": 1, "compacted": 1, "short": 1}
        settings = _SETTINGS | {
            "group.share.record.lock.duration.ms": str(LOCK_MS),
            "group.share.delivery.count.limit": str(LIMIT),
            "group.share.partition.max.record.locks": str(chance.choice([100, 200, 2000])),
            "share.coordinator.snapshot.update.records.per.snapshot": str(chance.choice([0, 5, 500])),
            "share.coordinator.append.linger.ms": str(chance.choice([-1, 0, 5])),
        }
        self.store_options: dict[str, int] = {
            "segment_bytes": 24 << 10,
            "cache_bytes": 32 << 10,
            "object_bytes": chance.choice([2_000, 20_000]),
            "part_bytes": 6_000,
            "objects_max": 20,
            "history_ms": chance.choice([3_000, 60_000]),
            "linger_ms": chance.choice([0, 20]),
            "puts_per_second": chance.choice([10, 50]),
        }
        # each segment has some share state: a bound lets it leave once that is pruned
        self.cache_bytes = chance.choice([8_000, 24_000]) if "little disk" in plan.features else 0
        self.bucket = SimulatedBucket(self)
        self.machines = [
            HomeMachine(self, number, directory / str(number), settings) for number in range(1, _MACHINES + 1)
        ]
        self.bootstrap = ",".join(f"broker:{each.port}" for each in self.machines)
        self._led_epoch = 0
        loop.pumps.append(self._look_at_leases)
        # actors, probe and end are those of a world with one machine
        self._any = cast(Any, self)
        self.probe = Probe(self._any)

    def chance(self, name: str) -> random.Random:
        """A source of chance of one's own, so that others may be left out."""
        return random.Random(f"{self.plan.seed}/{name}")

    @property
    def machine(self) -> HomeMachine:
        """The machine that leads, or one that does not."""
        return max(self.machines, key=lambda each: each.epoch)

    def cache_of(self, machine: HomeMachine) -> _core.SimulatedCache | None:
        """Return the bound on a machine's disk, if it has one."""
        if not self.cache_bytes:
            return None
        return self.bucket.memory.cache(EvictedWay(self.bucket, machine), self.cache_bytes)

    def _extent(self, topic_id: UUID, index: int) -> tuple[int, int] | None:
        broker = self.machine.broker if self.machine.up else None
        topic = None if broker is None else broker.topics.by_id(topic_id)
        if topic is None:
            return None
        log = topic.partitions[index]
        return log.start_offset, log.high_watermark

    def _is_proven(self, link: End) -> bool:
        """Whether the machine at the end of a connection may lease, and nobody leads in a later epoch."""
        process = process_of(link.context)
        assert isinstance(process, HomeProcess), "only machines serve"
        machine = process.machine
        is_proven = machine.may_lease() and self.loop.now - machine.unproven_at > _ANSWER_S
        return is_proven and machine.epoch >= self._led_epoch

    def _look_at_leases(self) -> None:
        """Never may two machines lease records: nothing but time keeps them from it."""
        leasing = [each for each in self.machines if each.may_lease()]
        if len(leasing) > 1:
            names = " and ".join(f"{each.site} (epoch {each.epoch})" for each in leasing)
            self.story.broken("two leaders lease", names)

    # what the auditor is told

    def leader_ended(self, machine: HomeMachine) -> None:
        """The process of a machine that led is gone."""
        self.auditor.restarted()

    def loads(self, machine: HomeMachine, share: SharePartition, start: int) -> None:
        """A machine begins to lead a share partition, with what was written and this start offset."""
        epoch = machine.epoch or self._led_epoch + 1
        if epoch < self._led_epoch:
            return  # it does not know yet that another one leads: it leases nothing
        if epoch > self._led_epoch:
            self._led_epoch = epoch
            self.auditor.restarted()
        self.auditor.loaded((share.key.group_id, share.key.topic_id, share.key.partition), start)

    # the whole life

    async def run(self) -> None:
        """The whole life."""
        for machine in self.machines:
            machine.start()
        if not await self.leader_within(_START_S):
            self.story.broken("nobody leads", "though nothing has happened")
            return
        try:
            await create_all(self._any)
        except Gone as gone:
            self.story.broken("no answer", f"though nothing has happened: {gone}")
            return
        self.bucket.begin()
        tasks = [self.loop.create_task(self._guard(name, work)) for name, work in actors_of(self._any)]
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
            task.cancel()
        if not self.story.violations:
            await faults.last_outage(self)
        if not self.story.violations:
            await faults.last_takeover(self)
        if not self.story.violations:
            await finish.run(self._any)
        self.probe.look()

    async def leader_within(self, seconds: float, among: Callable[[HomeMachine], bool] = bool) -> bool:
        """Whether a machine leads and may lease before long."""

        def leads() -> bool:
            return any(each.may_lease() and among(each) for each in self.machines)

        return await self.until(leads, within=seconds)

    async def until(self, so: Callable[[], bool], *, within: float = 1e9) -> bool:
        """Looks now and then whether something is so."""
        end = self.loop.now + within
        while not so():
            if self.loop.now > end or self.story.violations:
                return so()
            await asyncio.sleep(_LOOK_S)
        return True

    async def _guard(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Gone:
            self.story.tell(name, "gives up")

    def close(self) -> None:
        """Ends the stores of all machines."""
        for machine in self.machines:
            machine.close()


def simulate_home(plan: HomePlan) -> Outcome:
    """Runs one simulation to its end, or to the first violation."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with working_directory(memory) as directory, quiet(plan.seed):
        loop = HomeLoop(plan.seed)
        world = HomeWorld(plan, loop, directory)
        patches = [
            HOME_CANARIES[plan.canary].plant() if plan.canary else contextlib.nullcontext(),
            _loads_told(world),
            in_simulation(world),
            _prunes_early(world),
        ]
        return lived(plan, loop, world, patches, events_after=_EVENTS_AFTER, close=world.close)


def _prunes_early(world: HomeWorld) -> contextlib.AbstractContextManager[Any]:
    if not world.cache_bytes:
        return contextlib.nullcontext()
    return mock.patch.object(shard, "_PRUNE_RECORDS", _PRUNE_RECORDS)


@contextlib.contextmanager
def _loads_told(world: HomeWorld) -> Iterator[None]:
    begin = SharePartition._begin

    def told(self: SharePartition, state: Any) -> None:
        process = process_of(contextvars.copy_context())
        assert isinstance(process, HomeProcess), "only machines lead"
        world.loads(process.machine, self, state.state.start_offset)
        begin(self, state)

    with mock.patch.object(SharePartition, "_begin", told):
        yield
