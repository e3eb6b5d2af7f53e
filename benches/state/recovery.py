"""How long share state takes to be back: recovery DIRECTORY fill|read SHARE_PARTITIONS [RUNS UPDATES]."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from sharecore.clock import SystemClock
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import KafkaError
from sharecore.sharestate.coordinator import ShareCoordinator, StateSummary
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.sharestate.records import pack_batches
from sharecore.storage import Storage, StorageOptions

PARTITIONS = 50
_STAGED_BYTES = 16 << 20


class _NoTime:
    """Timers that never run: what is staged is flushed by hand."""

    def call_soon(self, callback: Callable[[], None], /) -> None:
        pass

    def call_later(self, delay: float, callback: Callable[[], None], /) -> _NoTime:
        return self

    def cancel(self) -> None:
        pass


def open_state(path: Path) -> tuple[Storage, ShareCoordinator]:
    """Return the data and a coordinator that stores its records there and flushes only on request."""
    storage = Storage(path, StorageOptions(durability="os"))
    topic = storage.topics.get(STATE_TOPIC)
    logs = list(topic.partitions) if topic is not None else []
    return storage, ShareCoordinator(CoordinatorRuntime(lambda: logs, SystemClock(), _NoTime()))


def _key(number: int) -> SharePartitionKey:
    return SharePartitionKey(f"group-{number % 100}", UUID(int=1 << 70), number)


async def _create(path: Path) -> None:
    storage = Storage(path)
    storage.attach(asyncio.get_running_loop())
    await storage.topics.create(STATE_TOPIC, PARTITIONS)
    storage.close()


def fill(path: Path, share_partitions: int, runs: int, updates: int) -> None:
    """Leaves state of so many share partitions, each of so many runs: so many updates behind the first."""
    asyncio.run(_create(path))
    storage, coordinator = open_state(path)
    batches = pack_batches((2 * run, 2 * run, 0 if run % 2 else 2, 1 + run % 3) for run in range(runs))
    changed = pack_batches([(3, 3, 0, 3)])

    def done(error: KafkaError | None) -> None:
        if error is not None:
            raise error

    for number in range(share_partitions):
        key = _key(number)
        coordinator.initialize(key, 0, 0, done)
        coordinator.write(key, 0, 0, 0, 0, batches, done)
        for _ in range(updates):
            coordinator.write(key, 0, 0, 0, 0, changed, done)
        if number % 100 == 99:
            coordinator.flush()
            if storage.store.staged_bytes > _STAGED_BYTES:
                storage.sync()
    coordinator.flush()
    storage.sync()
    storage.close()


def read(path: Path, share_partitions: int) -> None:
    """Print the seconds until all state is there, those of them on the CPU, and the memory in MB."""
    began, cpu_began = time.monotonic(), time.process_time()
    storage, coordinator = open_state(path)
    found: list[StateSummary | KafkaError] = []
    for number in range(share_partitions):
        coordinator.summary(_key(number), found.append)
        summary = found.pop()
        if isinstance(summary, KafkaError) or summary.start_offset != 0:
            raise RuntimeError(f"the state of share partition {number} is gone")
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_began
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(seconds, cpu_seconds, int(kilobytes) / 1024)
    storage.close()


if __name__ == "__main__":
    directory, what, *numbers = sys.argv[1:]
    if what == "fill":
        fill(Path(directory), *map(int, numbers))
    else:
        read(Path(directory), *map(int, numbers))
