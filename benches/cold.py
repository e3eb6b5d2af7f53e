"""How long a broker keeps others waiting while a consumer reads old records from the disk: `make bench-cold`.

Writes a topic, has the operating system forget it, and lets a consumer read it from its beginning. Meanwhile
another connection asks the broker a small question every few milliseconds: how long the answer takes is how
long anybody waits.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic

TOPIC, PARTITIONS = "old", 4
VALUE_BYTES = 10_000
PING_EVERY_S = 0.005
GROUP = "old-readers"
BROKERS = {"sharecore": ("sharecore", ("--durability", "os")), "Apache Kafka 4.3.1": ("apache", ())}

_READER = """
import sys, time
from confluent_kafka import Consumer, ShareConsumer, TopicPartition
kind, bootstrap, topic, partitions, count = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
if kind == "share":
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": "old-readers", "log_level": 0})
    consumer.subscribe([topic])
else:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "plain", "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
seen, began, deadline = 0, None, time.monotonic() + 300
while seen < count and time.monotonic() < deadline:
    got = consumer.consume(500, timeout=1.0) if kind == "plain" else consumer.poll(timeout=1.0)
    began = began or time.monotonic()
    seen += len(got)
print(seen, time.monotonic() - began)
"""


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


def measure(broker: Broker, kind: str, count: int) -> tuple[list[float], float]:
    """The waits, sorted, and the megabytes a second that a consumer got."""
    ping = Ping(broker.port)
    ping.start()
    if kind == "idle":
        time.sleep(5)
        return ping.end(), 0.0
    arguments = [kind, broker.bootstrap, TOPIC, str(PARTITIONS), str(count)]
    done = subprocess.run(
        [sys.executable, "-c", _READER, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    seen, seconds = done.stdout.split()
    if int(seen) < count:
        raise SystemExit(f"the {kind} consumer got {seen} of {count} records")
    return ping.end(), count * VALUE_BYTES / 1e6 / float(seconds)


def main() -> None:
    chosen = options()
    count = chosen.megabytes * 1_000_000 // VALUE_BYTES
    table = Table("broker", "meanwhile", "wait p50, ms", "p99, ms", "p99.9, ms", "longest, ms", "MB/s read")
    console = Console(width=max(120, Console().width))
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd() / "build") as scratch,
        Progress(console=console) as progress,
    ):
        for name in chosen.brokers:
            kind, arguments = BROKERS[name]
            broker = Broker(Path(scratch) / kind, kind, {}, arguments)
            broker.start()
            try:
                fill(broker, count, progress)
                if chosen.disk_mb:
                    slow_down(broker, chosen.disk_mb)
                configure_group(broker.bootstrap, GROUP, share_auto_offset_reset="earliest")
                for step in ("idle", *chosen.kinds):
                    forget(broker.home)
                    waits, rate = measure(broker, step, count)
                    shown = [waits[int(len(waits) * part)] for part in (0.5, 0.99, 0.999)] + [waits[-1]]
                    table.add_row(
                        name, step, *(f"{wait:.1f}" for wait in shown), f"{rate:.0f}" if rate else ""
                    )
            finally:
                broker.kill()
    disk = f"{chosen.disk_mb} MB/s from the disk; " if chosen.disk_mb else ""
    load = f"{chosen.megabytes} MB of records of {VALUE_BYTES} bytes; {disk}{os.cpu_count()} CPUs"
    console.print(f"{load}; {platform.platform()}")
    console.print(table)


if __name__ == "__main__":
    main()
