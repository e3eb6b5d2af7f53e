"""The machine under test: a broker, its disk, and what can befall them."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from tests.simulation.disk_steps import DiskSteps
from tests.simulation.loop import Clock, Process, SimulatedLoop
from tests.simulation.network import Listening, Network

from sharecore import _core
from sharecore.broker.broker import Broker
from sharecore.broker.store.backend import StoreBackend
from sharecore.config import BrokerConfig
from sharecore.errors import KafkaError
from sharecore.storage import Storage, StorageOptions

PORT = 9092
_SEGMENT_BYTES = 48 << 10
_CACHE_BYTES = 32 << 10
_SETTINGS = {
    "listeners": f"PLAINTEXT://broker:{PORT}",
    "offsets.topic.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.share.min.record.lock.duration.ms": "1000",
    "log.retention.check.interval.ms": "20000",
    "log.cleaner.backoff.ms": "15000",
}


@contextmanager
def drawn_chance(seed: int) -> Iterator[None]:
    """Whatever the process draws by itself comes from the seed."""
    chance = random.Random(seed)
    before = random.getstate()
    random.seed(seed)
    try:
        with mock.patch.object(os, "urandom", chance.randbytes):
            yield
    finally:
        random.setstate(before)


class Machine(DiskSteps):
    """A machine whose broker is started, killed and started again.

    Args:
        directory: what little the broker writes without its store, and its lock.
        died: called when the broker is gone.
        lied: called when the disk turns out not to hold what it had said it held.

    Attributes:
        broker: the one that runs, or is about to; None while the machine is off.
        lives: how often it was started.
        power_fails: what it means that the disk is gone: the power has failed, or the broker was killed.
        harmed: the disk has not been repaired since it lost something.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        network: Network,
        directory: Path,
        settings: Mapping[str, str],
        *,
        slow_disk_s: float,
        died: Callable[[], None],
        lied: Callable[[], None],
    ) -> None:
        self.loop = loop
        self.clock = Clock(loop)
        self.broker: Broker | None = None
        self.lives = 0
        self.disk = _core.MemoryDisk(directory, loop.random.getrandbits(63))
        self.failures: list[BaseException] = []
        self._network = network
        self._config = BrokerConfig.from_properties({**_SETTINGS, "log.dirs": str(directory), **settings})
        self._slow_disk_s = slow_disk_s
        # space written ahead is freed on a full disk: some brokers have none
        self._ahead_bytes = loop.random.choice([0, 0, 1 << 10])
        # some brokers commit in the turn that serves a client
        self._own_commit_clients = 0 if self._ahead_bytes else 1
        self._died = died
        self._lied = lied
        self._harms = 0
        self.harmed = False
        self.power_fails = True
        self._process: Process | None = None
        self._starting: asyncio.Task[None] | None = None
        loop.pumps.append(self._pump)

    def tell(self, callback: Callable[[], object]) -> None:
        """Calls something in the broker."""
        if self._process is not None:
            self.loop.call_soon(callback, context=self._process.context)

    @property
    def up(self) -> bool:
        """Whether the broker has started."""
        starting = self._starting
        return starting is not None and starting.done() and starting.exception() is None

    def start(self) -> None:
        """Switches the machine on."""
        assert self._process is None
        self.lives += 1
        self._process = process = Process(f"broker {self.lives}")
        self.loop.processes.append(process)
        self._starting = self.loop.create_task(self._start(), context=process.context)

    async def until_up(self, *, excused: Callable[[], bool] = lambda: False) -> None:
        """Switches the machine on where it is off, and waits until the broker serves.

        Args:
            excused: whether it is right that the broker does not start now.
        """
        while not self.up and not self.failures:
            starting = self._starting
            if starting is None:
                self.start()
            elif starting.done() and (error := starting.exception()) is not None:
                if not (excused() and isinstance(error, (OSError, KafkaError))):
                    self.failures.append(error)
                    return
                self.kill(power=False)
            await asyncio.sleep(0.01)

    async def tried(self) -> BaseException | None:
        """Switches the machine on once; gives why the broker does not start."""
        self.start()
        assert self._starting is not None
        await asyncio.wait([self._starting])
        return self._starting.exception()

    def kill(self, *, power: bool) -> None:
        """Ends the broker; what follows sees what the disk may hold then.

        Args:
            power: the machine loses its power, not only its process.
        """
        process = self._process
        if process is None:
            return
        self.loop.end(process)
        self._process = None
        self.loop.graveyard += [self.broker, self._starting, self._store]
        self._starting = None
        self.broker = None
        self._abandon()
        if power:
            self.disk.crash()
        else:
            self.disk.restart()
        self._look_at_disk()
        self._network.power_failed(lambda end: end.context is process.context or end.address[1] == PORT)
        self._died()

    async def stop(self) -> None:
        """Ends the broker as an administrator does."""
        process, broker = self._process, self.broker
        if process is None or broker is None or not self.up:
            return
        await self.loop.create_task(broker.stop(), context=process.context)
        if self._process is process:
            self._store = None
            self.kill(power=False)

    def close(self) -> None:
        """Gives the directory back."""
        if self._store is not None:
            self._store.abandon()
        self.disk.unmount()

    async def _start(self) -> None:
        self.broker = Broker(
            self._config, clock=self.clock, check_names=False, backend=StoreBackend(self._open_storage)
        )
        await self.broker.start()

    def _open_storage(self, path: Path, options: StorageOptions) -> Storage:
        def stepped(where: str, options: StorageOptions) -> _core.Store:
            store = _core.Store.stepped(
                where,
                durability=options.durability,
                segment_bytes=_SEGMENT_BYTES,
                cache_bytes=_CACHE_BYTES,
                staging_bytes=options.staging_bytes,
                ahead_bytes=self._ahead_bytes,
                own_commit_clients=self._own_commit_clients,
            )
            return self._opened(store)

        return Storage(path, options, open_store=stepped)

    # the disk, a step at a time

    def _pump(self) -> None:
        if self._store is not None:
            self._step_disk(self._store)

    def _latency_s(self) -> float:
        chance = self.loop.random
        return chance.uniform(0, self._slow_disk_s) * (20 if chance.random() < 0.02 else 1)

    def _look_at_disk(self) -> None:
        harms = self.disk.harmed
        if harms != self._harms:
            self._harms = harms
            self.harmed = True
            self._lied()

    def _outcome(self, store: _core.Store) -> None:
        self._look_at_disk()
        if self.disk.is_gone:
            self.kill(power=self.power_fails)
        else:
            super()._outcome(store)


@contextmanager
def in_simulation(machine: Machine, network: Network) -> Iterator[None]:
    """Sockets are the network's, and threads of the log cleaner do not sleep."""
    sockets = SimpleNamespace(**{**vars(socket), "socket": partial(Listening, network)})
    time = SimpleNamespace(sleep=machine.nap)
    accepts = mock.patch("sharecore.network.binding.socket", sockets)
    with accepts, mock.patch("sharecore.broker.store.cleaner.time", time):
        yield


def full_disk(machine: Machine, bytes_left: int) -> None:
    """Leaves so much room."""
    machine.disk.set_capacity(machine.disk.used_bytes + bytes_left)


IO_ERROR = errno.EIO
