"""One simulation: a machine, those who use it, and what befalls them, in one loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID

from tests.simulation import faults, finish, letters
from tests.simulation.actors import admins, clients, members, producers
from tests.simulation.auditor import Auditor
from tests.simulation.canaries import CANARIES
from tests.simulation.life import Outcome, lived, quiet, working_directory
from tests.simulation.loop import Clock, Process, SimulatedLoop
from tests.simulation.machine import PORT, Machine, in_simulation
from tests.simulation.network import Network
from tests.simulation.probe import Probe
from tests.simulation.queues import actors as queue_actors
from tests.simulation.queues import settings as queues
from tests.simulation.queues.canaries import QUEUE_CANARIES
from tests.simulation.queues.windows import small_windows
from tests.simulation.story import Story
from tests.simulation.swarm import Plan
from tests.simulation.wire import Gone, Wire

from sharecore.partition.leader import SharePartition
from sharecore.protocol import ApiKey

LIMIT = 4
LOCK_MS = 3_000
_EVENTS_AFTER = 400_000


class World:
    """What actors act in.

    Attributes:
        quiet: the actors have stopped, or are about to.
        topics: those to produce to, with their number of partitions.
        groups: share groups, with their isolation level.
        queue_settings: those that groups have in the beginning, where a seed has any.
        bootstrap: where clients begin.
        attempts: how often a producer tries a batch before it is stuck.
    """

    bootstrap = f"broker:{PORT}"
    attempts = 100

    def __init__(self, plan: Plan, loop: SimulatedLoop, directory: Path) -> None:
        self.plan = plan
        self.loop = loop
        self.quiet = False
        self.story = Story(loop)
        self.auditor = Auditor(loop, self.story, LIMIT, self._extent)
        self.auditor.ledger.compacted.add("compacted")
        self.network = Network(loop, plan.weather, self.auditor)
        loop.connect = self.network
        chance = self.chance("settings")
        self.groups = {f"group-{i}": chance.choice(["read_committed", "read_uncommitted"]) for i in range(2)}
        self.topics = {"first": 2, "second": 1, "compacted": 1, "short": 1}
        settings = letters.BROKER_SETTINGS | {
            "group.share.record.lock.duration.ms": str(LOCK_MS),
            "group.share.delivery.count.limit": str(LIMIT),
            "group.share.partition.max.record.locks": str(chance.choice([100, 200, 2000])),
            "share.coordinator.snapshot.update.records.per.snapshot": str(chance.choice([0, 5, 500])),
            "share.coordinator.append.linger.ms": str(chance.choice([-1, 0, 5])),
        }
        self.queue_settings = {
            group: queues.drawn(self.chance(f"queue {group}"), plan.features, 0)
            for group in self.groups
            if plan.features & set(queues.FEATURES)
        }
        for group in self.queue_settings:
            self.auditor.queues.watch(group)
        slow_s = 0.02 if "slow disk" in plan.features else 0.002
        self.machine = Machine(
            loop,
            self.network,
            directory,
            settings,
            slow_disk_s=slow_s,
            died=self.auditor.restarted,
            lied=self.auditor.harmed,
        )
        self.auditor.queues.clock = self.machine.clock
        self.probe = Probe(self)

    def chance(self, name: str) -> random.Random:
        """A source of chance of one's own, so that others may be left out."""
        return random.Random(f"{self.plan.seed}/{name}")

    @property
    def clock(self) -> Clock:
        return self.machine.clock

    def _extent(self, topic_id: UUID, index: int) -> tuple[int, int] | None:
        broker = self.machine.broker if self.machine.up else None
        topic = None if broker is None else broker.topics.by_id(topic_id)
        if topic is None:
            return None
        log = topic.partitions[index]
        return log.start_offset, log.high_watermark

    async def run(self) -> None:
        """The whole life."""
        self.machine.start()
        await self.machine.until_up()
        await self.set_up()
        actors = actors_of(self)
        tasks = [self._begun(name, work) for name, work in actors]
        trouble = self.loop.create_task(faults.run(self))
        await self.until(lambda: self.loop.events >= self.plan.events or bool(self.story.violations))
        self.quiet = True
        await trouble
        self.story.tell("simulation", "the faults stop")
        if not self.story.violations:
            await asyncio.wait(tasks, timeout=120)
        for task in tasks:
            if not task.done() and not self.story.violations:
                self.story.broken("an actor does not come to an end", str(task.get_coro()))
            task.cancel()
        if not self.story.violations:
            await finish.run(self)
        self.probe.look()
        for failure in self.machine.failures:
            self.story.broken("the broker does not start", f"{type(failure).__name__}: {failure}")

    async def until(self, so: Callable[[], bool]) -> None:
        """Looks now and then whether something is so."""
        while True:
            await asyncio.sleep(0.05)
            if so():
                return

    def _begun(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """An actor is a process of its own: nothing orders it and the broker, but what they send."""
        process = Process(name)
        self.loop.processes.append(process)
        return self.loop.create_task(self._guard(name, work), context=process.context)

    async def _guard(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Gone:
            self.story.tell(name, "gives up")

    async def set_up(self) -> None:
        """Topics and groups, where they are not there."""
        await create_all(self)

    async def grow(self) -> None:
        """Gives topics the partitions that they had, where a disk has lost that they had grown."""
        wire = await Wire.open("grow")
        topics = [{"name": name, "count": count, "assignments": None} for name, count in self.topics.items()]
        await wire.ask(ApiKey.CREATE_PARTITIONS, 3, topics=topics, timeout_ms=5000, validate_only=False)
        wire.close()


def actors_of(world: World) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Those whom a plan has, with their names."""
    on = world.plan.features
    found: list[tuple[str, Coroutine[Any, Any, None]]] = [
        ("plain", producers.plain(world, "plain")),
        ("watch", admins.watch(world, "watch")),
    ]
    kinds: dict[str, list[Callable[[World, str], Coroutine[Any, Any, None]]]] = {
        "idempotent": [producers.idempotent],
        "transactions": [producers.transactional] * 2,
        "twins": [producers.twin] * 2,
        "members": [members.member] * 3,
        "misfits": [members.misfit] * 2,
        "consumers": [clients.consumer] * 2,
        "workers": [clients.work],
        "offset administrators": [admins.offsets],
        "topic administrators": [admins.topics],
        queues.ORDER: [queue_actors.keyed],
        queues.WAITS: [queue_actors.keyed],
        queues.CHANGES: [queue_actors.administer],
    }
    if not on & {"members", "consumers", "workers"}:
        kinds["plain"] = [members.member]
    for feature, makers in kinds.items():
        if feature in on or feature == "plain":
            for number, make in enumerate(makers):
                name = f"{feature.rstrip('s')}-{number}"
                found.append((name, make(world, name)))
    return found


async def create_all(world: World) -> None:
    """Create the topics and groups of a world, where they are not there."""
    wire = await Wire.open("set-up")
    topics = [
        {"name": name, "num_partitions": count, "replication_factor": 1, "configs": _configs(name)}
        for name, count in world.topics.items()
    ]
    await wire.ask(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000)
    for group, isolation in world.groups.items():
        world.auditor.lock_altered(group, LOCK_MS / 1000)
        await admins.set_up(world, wire, group, isolation)
    wire.close()


def _configs(topic: str) -> list[dict[str, str]]:
    if topic == "compacted":
        return [
            {"name": "cleanup.policy", "value": "compact"},
            {"name": "min.cleanable.dirty.ratio", "value": "0.1"},
            {"name": "segment.ms", "value": "10000"},
        ]
    if topic == "short":
        return [{"name": "retention.ms", "value": "30000"}]
    return []


def simulate(plan: Plan) -> Outcome:
    """Runs one simulation to its end, or to the first violation."""
    with working_directory() as directory, quiet(plan.seed):
        loop = SimulatedLoop(plan.seed)
        world = World(plan, loop, directory)
        known = CANARIES | QUEUE_CANARIES
        patches = [
            known[plan.canary].plant() if plan.canary else contextlib.nullcontext(),
            _loads_told(world.auditor),
            small_windows() if world.queue_settings else contextlib.nullcontext(),
            in_simulation(world.machine, world.network),
        ]
        return lived(plan, loop, world, patches, events_after=_EVENTS_AFTER, close=world.machine.close)


@contextlib.contextmanager
def _loads_told(auditor: Auditor) -> Iterator[None]:
    """The auditor is told when a share partition begins with what was written."""
    begin = SharePartition._begin

    def told(self: SharePartition, state: Any) -> None:
        auditor.loaded((self.key.group_id, self.key.topic_id, self.key.partition), state.state.start_offset)
        begin(self, state)

    with mock.patch.object(SharePartition, "_begin", told):
        yield
