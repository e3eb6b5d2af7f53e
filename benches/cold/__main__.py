"""How long a broker keeps others waiting while a consumer reads old records from the disk: `make bench-cold`.

Writes a topic, has the operating system forget it, and lets a consumer read it from its beginning. Meanwhile
another connection asks the broker a small question every few milliseconds, and a member of a share group gets
records of another topic one by one: how long an answer takes, and a record from its producer to the member.
What of it is the disk's doing shows beside the same reader while memory holds the topic.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benches.apache import as_kafka_starts_it
from benches.cold.turns import Turns
from benches.machine import machine
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic

TOPIC, PARTITIONS = "old", 4
VALUE_BYTES = 10_000
PING_EVERY_S = 0.005
HOT, HOT_EVERY_S = "hot", 0.01
IDLE_S = 10
BROKERS = {"sharecore": ("sharecore", ("--durability", "os")), "Apache Kafka 4.3.1": ("apache", ())}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-cold", description=__doc__)
    parser.add_argument(
        "--megabytes", type=int, default=2_000, help="size of the topic (default: %(default)s)"
    )
    parser.add_argument("--kinds", nargs="+", choices=["plain", "share"], default=["plain", "share"])
    parser.add_argument(
        "--disk-mb",
        type=int,
        default=0,
        help="megabytes a second that the broker may read (needs root); 0: all",
    )
    parser.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    parser.add_argument(
        "--beside",
        action="store_true",
        help="also while the consumer reads from another broker here: what of it is the machine's doing",
    )
    return parser.parse_args()


def fill(broker: Broker, count: int, progress: Progress) -> None:
    from confluent_kafka import Producer

    create_topic(broker.bootstrap, TOPIC, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "log_level": 0})
    value = random.Random(7).randbytes(VALUE_BYTES)
    task = progress.add_task("writing", total=count)
    for number in range(count):
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 500 == 0:
            producer.poll(0)
            progress.update(task, completed=number)
    producer.flush(120)
    progress.remove_task(task)


def forget(home: Path) -> None:
    """Has the operating system write the broker's files to the disk and forget what it holds of them."""
    for path in home.rglob("*"):
        if path.is_file() and path.stat().st_size > 0:
            descriptor = os.open(path, os.O_RDONLY)
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def slow_down(broker: Broker, megabytes: int) -> None:
    """Lets the broker read so many megabytes a second from its disk, by a control group of its own."""
    device = os.stat(broker.home).st_dev
    disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    whole = disk.parent if (disk / "partition").exists() else disk
    number = (whole / "dev").read_text().strip()
    root = Path("/sys/fs/cgroup")
    if (root / "blkio").is_dir():
        group = root / "blkio" / f"sharecore-bench-{broker.pid}"
        group.mkdir()
        (group / "blkio.throttle.read_bps_device").write_text(f"{number} {megabytes * 1_000_000}")
    else:
        group = root / f"sharecore-bench-{broker.pid}"
        group.mkdir()
        (group / "io.max").write_text(f"{number} rbps={megabytes * 1_000_000}")
    for thread in Path(f"/proc/{broker.pid}/task").iterdir():
        (group / ("tasks" if (group / "tasks").exists() else "cgroup.procs")).write_text(thread.name)


class Ping(threading.Thread):
    """Asks the broker for its API versions every few milliseconds; notes how long each answer took."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.waits: list[float] = []
        self._ended = threading.Event()
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)

    def run(self) -> None:
        request = struct.pack(">hhih4s", 18, 0, 1, 4, b"ping")
        with self._socket, self._socket.makefile("rb") as stream:
            while not self._ended.wait(PING_EVERY_S):
                asked = time.perf_counter()
                self._socket.sendall(struct.pack(">i", len(request)) + request)
                (size,) = struct.unpack(">i", stream.read(4))
                stream.read(size)
                self.waits.append((time.perf_counter() - asked) * 1e3)

    def end(self) -> list[float]:
        self._ended.set()
        self.join()
        return sorted(self.waits)


class Hot:
    """A producer and a member of a share group, in a process of their own."""

    def __init__(self, bootstrap: str) -> None:
        command = [sys.executable, "-m", "benches.cold.hot", bootstrap, HOT, str(HOT_EVERY_S)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the member gets no records"

    def end(self) -> list[float]:
        """How long each record took, sorted."""
        out, _ = self._process.communicate(timeout=60)
        return sorted(json.loads(out))


class Measured(NamedTuple):
    """How long answers and hot records took, each sorted, and the megabytes a second that a consumer got.

    `turns`: milliseconds of CPU of all but a thousandth of the turns of the broker's event loop, and of the
    longest, where it has one.
    """

    waits: list[float]
    hot: list[float]
    rate: float
    turns: tuple[float, float] | None


def measure(
    broker: Broker, source: Broker, kind: str, group: str, count: int, turns: Turns | None
) -> Measured:
    """What others feel at a broker while a consumer reads the topic of `source`, or nobody does (`idle`)."""
    hot, ping = Hot(broker.bootstrap), Ping(broker.port)
    ping.start()
    rate = 0.0
    if turns is not None:
        turns.begin()
    if kind == "idle":
        time.sleep(IDLE_S)
    else:
        arguments = [kind, source.bootstrap, TOPIC, str(PARTITIONS), str(count), group]
        command = [sys.executable, "-m", "benches.cold.reader", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seen, seconds = done.stdout.split()
        if int(seen) < count:
            raise SystemExit(f"the {kind} consumer got {seen} of {count} records")
        rate = count * VALUE_BYTES / 1e6 / float(seconds)
    took = None if turns is None else (turns.longest(0.999), turns.longest())
    return Measured(ping.end(), hot.end(), rate, took)


def measure_reads(
    broker: Broker, source: Broker, kinds: Sequence[str], count: int, turns: Turns | None
) -> Iterator[tuple[str, Measured]]:
    """`measure` with each kind of consumer, from memory and from the disk."""
    for kind in kinds:
        for where in ("memory", "the disk"):
            if where == "the disk":
                forget(source.home)
            group = f"{kind} {where}"
            configure_group(source.bootstrap, group, share_auto_offset_reset="earliest")
            yield f"{kind}, from {where}", measure(broker, source, kind, group, count, turns)


def cells(found: Measured) -> list[str]:
    """What the table shows."""
    shown = [
        *(at(found.waits, part) for part in (0.5, 0.99, 0.999, 1)),
        *(at(found.hot, part) for part in (0.5, 0.99)),
    ]
    turns = ["", ""] if found.turns is None else [f"{took:.2f}" for took in found.turns]
    return [*(f"{wait:.1f}" for wait in shown), *turns, f"{found.rate:.0f}" if found.rate else ""]


def at(ascending: list[float], part: float) -> float:
    return ascending[min(int(len(ascending) * part), len(ascending) - 1)]


def main() -> None:
    chosen = options()
    count = chosen.megabytes * 1_000_000 // VALUE_BYTES
    as_kafka_starts_it()
    table = Table(
        *("broker", "meanwhile", "wait p50, ms", "p99", "p99.9", "longest", "hot p50, ms", "p99"),
        *("turn p99.9, CPU ms", "longest", "MB/s read"),
    )
    console = Console(width=max(140, Console().width))
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd() / "build") as scratch,
        Progress(console=console) as progress,
    ):
        for name in chosen.brokers:
            kind, arguments = BROKERS[name]
            broker = Broker(Path(scratch) / kind, kind, {}, arguments)
            turns = Turns(broker.home) if kind == "sharecore" else None
            if turns is not None:
                broker.environment |= turns.environment
            sources = {"": broker}
            if chosen.beside:
                sources[", of another broker"] = Broker(Path(scratch) / f"{kind}-beside", kind, {}, arguments)
            try:
                for source in sources.values():
                    source.start()
                    fill(source, count, progress)
                    if chosen.disk_mb:
                        slow_down(source, chosen.disk_mb)
                create_topic(broker.bootstrap, HOT)
                idle = measure(broker, broker, "idle", "", count, turns)
                table.add_row(name, "nothing", *cells(idle))
                for of, source in sources.items():
                    for meanwhile, found in measure_reads(broker, source, chosen.kinds, count, turns):
                        table.add_row(name, meanwhile + of, *cells(found))
                        progress.console.print(f"{name}, {meanwhile}{of}: {found.rate:.0f} MB/s")
            finally:
                for source in sources.values():
                    source.kill()
    disk = f"{chosen.disk_mb} MB/s from the disk; " if chosen.disk_mb else ""
    load = f"{chosen.megabytes} MB of records of {VALUE_BYTES} bytes; {disk}{machine()}"
    console.print(load)
    console.print(table)


if __name__ == "__main__":
    main()
