"""The machines of a home: each stands by, takes over, leads, and ends, as `serve` has it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulation.disk_steps import DiskSteps
from tests.simulation.loop import process_of
from tests.simulation.tier.processes import AHEAD_MS, FASTEST, SLOWEST, Paced, PacedClock, TierLoop

from sharecore import _core
from sharecore.broker.broker import Broker
from sharecore.broker.lobby.standby import Lobby
from sharecore.broker.store.backend import StoreBackend
from sharecore.broker.store.home_nodes import leader_epoch
from sharecore.broker.store.home_watch import LEASE_MS, fenced_mark
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError, KafkaError
from sharecore.storage import Storage, StorageOptions

if TYPE_CHECKING:
    from tests.simulation.home.world import HomeWorld

FIRST_PORT = 9200
_SLOW_DISK_S = 0.002
_LOOK_S = 0.01
_WAIT_S = 0.02
_RESTART_S = 1.0
"""A supervisor starts a process again after so long."""


class HomeProcess(Paced):
    """A process on a machine.

    Attributes:
        machine: where it runs.
        spent_s: what the requests of its thread have taken, which it has not waited for yet.
        waits_until: when its threads have waited for all of that.
    """

    def __init__(self, machine: HomeMachine, pace: float) -> None:
        super().__init__(machine.site, pace)
        self.machine = machine
        self.spent_s = 0.0
        self.waits_until = 0.0


def here() -> HomeMachine:
    """The machine whose process runs now."""
    process = process_of(copy_context())
    assert isinstance(process, HomeProcess), "only machines of a home do this"
    return process.machine


class HomeLoop(TierLoop):
    """A loop whose threads may wait for a bucket, or for a store that waits for one."""

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        process = process_of(copy_context())
        if not isinstance(process, HomeProcess):
            return super().run_in_executor(executor, func, *args)
        inner = func.args[0] if isinstance(func, partial) and func.args else None
        if getattr(inner, "__name__", "") == "wait" and isinstance(
            store := getattr(inner, "__self__", None), _core.Store
        ):
            assert isinstance(func, partial)
            return asyncio.ensure_future(_settled(store, func.args[1]))
        future: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            if future.done():
                return
            process.spent_s = 0.0
            try:
                with process.machine.waiting():
                    result, error = func(*args), None
            except Exception as failure:
                result, error = None, failure
            process.waits_until = max(process.waits_until, self.now + process.spent_s)
            self.call_later(process.spent_s, done, result, error)
            process.spent_s = 0.0

        def done(result: Any, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.call_later(self.random.uniform(0, _LOOK_S), run)
        return future


async def _settled(store: _core.Store, sequence: int) -> None:
    while not store.is_settled(sequence):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)


class HomeMachine(DiskSteps):
    """A machine with a data directory, whose broker stands by or leads.

    Attributes:
        broker: the one that leads or is about to; None while it stands by or does not run.
        process: the one that runs; None while the machine is off.
        lives: how often it was started.
        clock: its own.
        kept_down: it is not to be started again now.
        unproven_at: when it was last found that another one may lead.
        harmed: never: what a disk loses is in the bucket.
        may_wait: what runs now is a thread's, or a start's: it may wait for the bucket.
        evicted: segments that its stores have evicted so far.
    """

    harmed = False

    def __init__(self, world: HomeWorld, number: int, directory: Path, settings: Mapping[str, str]) -> None:
        self.node_id = number
        self.port = FIRST_PORT + number
        self.site = f"machine {number}"
        self.directory = directory
        self.world = world
        self.loop = world.loop
        self.broker: Broker | None = None
        self.process: HomeProcess | None = None
        self.clock: Any = world.clock
        self.lives = 0
        self.kept_down = False
        self.may_wait = False
        self.evicted = 0
        self.unproven_at = 0.0
        self._is_serving = False
        self._living: asyncio.Task[None] | None = None
        self._due_at = 0.0
        self._outside = copy_context()
        self._config = BrokerConfig.from_properties(
            {
                **settings,
                "log.dirs": str(directory),
                "node.id": str(number),
                "listeners": f"PLAINTEXT://broker:{self.port}",
            }
        )
        world.network.sites[self.port] = self.site
        world.loop.pumps.append(self._pump)

    @property
    def up(self) -> bool:
        """Whether it leads, as far as it knows."""
        return self._is_serving

    @property
    def epoch(self) -> int:
        """The leader epoch in which it leads; 0 while it does not."""
        return leader_epoch(self.broker.catalog) if self.broker is not None and self.up else 0

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.held is not None

    @property
    def was_fenced(self) -> bool:
        """Whether it is more patient than others."""
        return fenced_mark(self.directory).exists()

    def may_lease(self) -> bool:
        """Whether it would lease records now."""
        return self._store is not None and self.up and not self.is_paused and self.proven(LEASE_MS)

    def proven(self, lease_ms: int) -> bool:
        """Whether nobody else can lead who waits longer than that."""
        is_so = self._store is not None and self._store.is_proven_at(self.clock.monotonic_ms(), lease_ms)
        if not is_so:
            self.unproven_at = self.world.loop.now
        return is_so

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let the store wait for the bucket, as a thread does."""
        before, self.may_wait = self.may_wait, True
        try:
            yield
        finally:
            self.may_wait = before

    @property
    def spent_s(self) -> float:
        """What a thread has waited, which is not over yet."""
        return 0.0 if self.process is None else self.process.spent_s

    def spend(self, seconds: float) -> None:
        """A thread has waited."""
        if self.process is not None:
            self.process.spent_s += seconds

    def now_ms(self) -> int:
        """The time of a thread that has waited for the bucket."""
        return int(self.clock.monotonic_ms() + self.spent_s * 1000)

    # the process

    def start(self) -> None:
        """Switches it on."""
        assert self.process is None
        world = self.world
        chance = world.chance(f"{self.site} life {self.lives}")
        self.lives += 1
        drifts = "clock drift" in world.plan.features
        pace = chance.choice([1.0, SLOWEST, FASTEST, 1.001]) if drifts else 1.0
        self.process = process = HomeProcess(self, pace)
        self.clock = PacedClock(world.loop, process, chance.choice(AHEAD_MS) if drifts else 0)
        world.loop.processes.append(process)
        self._living = world.loop.create_task(self._live(), context=process.context)
        self._living.add_done_callback(partial(self._ended, process))

    async def _live(self) -> None:
        lobby = Lobby(self._config)
        await lobby.wait(lambda text: self.world.story.tell(self.site, "stands by"))
        self.world.story.tell(self.site, "claims the home")
        self.broker = Broker(
            self._config,
            clock=self.clock,
            check_names=False,
            backend=StoreBackend(
                self._open_storage, is_tried=True, former=lobby.former, standby=lobby.watching
            ),
            lobby=lobby.broker,
        )
        await self.broker.start()
        self._is_serving = True
        self.world.story.tell(self.site, f"leads in epoch {self.epoch}, in its life {self.lives}")

    def _ended(self, process: HomeProcess, living: asyncio.Task[None]) -> None:
        if living.cancelled() or self.process is not process:
            return
        error = living.exception()
        if error is None:
            return
        self.world.story.tell(self.site, f"does not start: {type(error).__name__}: {error}")
        if isinstance(error, ConfigError) or not isinstance(error, (KafkaError, OSError)):
            self.world.story.broken("a machine does not start", f"{type(error).__name__}: {error}")
        self.kill()
        self._start_later()

    def _start_later(self) -> None:
        # not in the context of the process that ended
        self.world.loop.call_later(_RESTART_S, self.start_again, context=self._outside)

    def start_again(self) -> None:
        """As a supervisor does."""
        if self.process is None and not self.kept_down:
            self.start()

    def left(self, status: int) -> None:
        """Its process ends at once, by itself."""
        self.world.story.tell(self.site, f"ends with status {status}")
        self.kill()
        self._start_later()

    def kill(self) -> None:
        """Ends the process at once."""
        process, world = self.process, self.world
        if process is None:
            return
        led, self._is_serving = self._is_serving, False
        world.loop.end(process)
        self.process = None
        world.loop.graveyard += [self.broker, self._living, self._store]
        self._living = self.broker = None
        self._abandon()
        world.network.ended(self.site)
        if led:
            world.leader_ended(self)

    async def stop(self) -> None:
        """Ends it as an administrator does."""
        process, broker = self.process, self.broker
        if process is None:
            return
        if broker is not None and self.up:
            stopping = self.world.loop.create_task(broker.stop(), context=process.context)
            await asyncio.wait([stopping], timeout=30)
            if self.process is process and stopping.done() and (error := stopping.exception()) is not None:
                self.world.story.broken("a machine does not stop", f"{type(error).__name__}: {error}")
        if self.process is process:
            self.kill()

    def lose_disk(self, chance: Any) -> None:
        """The power fails: what the disk holds is gone, or the end of its journal."""
        self.kill()
        if chance.random() < 0.5:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        journals = sorted(self.directory.glob("*.journal"))
        if journals:
            size = journals[-1].stat().st_size
            os.truncate(journals[-1], max(0, size - chance.randrange(2000)))

    def close(self) -> None:
        if self._store is not None:
            self._store.abandon()

    # the store, a step at a time

    def _open_storage(self, path: Path, options: StorageOptions) -> Storage:
        assert options.copy is not None, "it is a home"
        assert options.copy.standby is not None, "every broker of a home stands by first"
        copy, standby, chance = (
            options.copy,
            options.copy.standby,
            self.world.chance(f"{self.site} store {self.lives}"),
        )

        def stepped(where: str, options: StorageOptions) -> _core.Store:
            store = _core.Store.stepped_home(
                where,
                standby=standby,
                cluster_id=copy.cluster_id,
                node_id=copy.node_id,
                writer=chance.randbytes(16),
                staging_bytes=options.staging_bytes,
                cache=self.world.cache_of(self),
                **self.world.store_options,
            )
            self._due_at = 0.0
            store.set_pump(self._wait_a_little)
            return self._opened(store)

        with self.waiting():
            return Storage(path, options, open_store=stepped)

    def _pump(self) -> None:
        store, process = self._store, self.process
        if store is None or process is None or process.held is not None:
            return
        self._step_disk(store)
        self._step_bucket(store, process)

    def _latency_s(self) -> float:
        return self.world.loop.random.uniform(0, _SLOW_DISK_S)

    def _step_bucket(self, store: _core.Store, process: HomeProcess) -> None:
        loop, now_ms = self.world.loop, self.clock.monotonic_ms()
        try:
            due_ms = store.step_bucket(now_ms, self.clock.now_ms())
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            self.world.story.broken("a panic", str(error))
            return
        for call in store.bucket_calls():
            self.world.bucket.send(self, process, call)
        if due_ms is not None:
            due_at = loop.now + max(due_ms - now_ms, 1) / 1000
            if not loop.now < self._due_at <= due_at:
                self._due_at = due_at
                loop.call_at(due_at, self._woken, context=process.context)

    def _woken(self) -> None:
        """What is due is done while nothing else is ready."""

    def answered(self, process: HomeProcess, number: int, answer: _core.BucketAnswer) -> None:
        """The bucket, or the transport, has answered a request of the store of a process."""
        store = self._store
        if store is not None and process is self.process:
            store.answer_bucket(number, answer)
            self._step_bucket(store, process)
            self.world.loop.readable(store.fileno())

    def _wait_a_little(self) -> None:
        """A thread of the store waits for the bucket."""
        store, process = self._store, self.process
        if store is not None and process is not None:
            self.world.loop.now += _WAIT_S
            self.world.bucket.deliver()
            self._step_bucket(store, process)

    def _spent(self, step: Callable[[], object]) -> float:
        """Do a thread's step; return how long it has waited for the bucket."""
        process = self.process
        assert process is not None, "its callbacks end with it"
        process.spent_s = 0.0
        with self.waiting():
            step()
        spent_s, process.spent_s = process.spent_s, 0.0
        return spent_s

    def _read(self, store: _core.Store) -> None:
        if store is self._store:
            spent_s = self._spent(store.step_read)
            self._later(spent_s, self._read_ended, store)

    def _read_ended(self, store: _core.Store) -> None:
        if store is self._store:
            self._reading = False
            self._outcome(store)

    def _maintain(self, store: _core.Store) -> None:
        if store is not self._store:
            return
        before = self._evicted(store)

        def maintain() -> None:
            self._maintaining = store.maintain()

        spent_s = self._spent(maintain)
        self.evicted += self._evicted(store) - before
        self._outcome(store)
        if self._maintaining:
            pause_s = 1.0 if store.maintenance_error else self._latency_s()
            self._later(spent_s + pause_s, self._maintain, store)

    @staticmethod
    def _evicted(store: _core.Store) -> int:
        status = store.bucket_status()
        return 0 if status is None else status.evicted

    def _later(self, delay_s: float, step: Callable[[_core.Store], None], store: _core.Store) -> None:
        assert self.process is not None, "its callbacks end with it"
        self.loop.call_later(delay_s, step, store, context=self.process.context)

    def _written(self, store: _core.Store) -> None:
        assert self.process is not None, "its callbacks end with it"
        self._step_bucket(store, self.process)
        self._outcome(store)
