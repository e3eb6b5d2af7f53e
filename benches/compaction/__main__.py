"""Log compaction beside Apache Kafka: how fast a topic is compacted, and in how much memory: `make
bench-compaction`.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import threading
import time
from pathlib import Path

from benches.apache import as_kafka_starts_it
from confluent_kafka import Producer
from rich import box
from rich.console import Console
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, create_topic
from tests.harness.compaction import compacted_to, configure_topic

BROKERS = {"sharecore": "sharecore", "Apache Kafka 4.3.1": "apache"}
TOPIC = "bench"
SEGMENT_MS = 60_000
SETTLE_SECONDS = 5.0
MB = 1 << 20
Figures = dict[str, float]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-compaction", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000, help="default: %(default)s")
    parser.add_argument("--keys", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--value-bytes", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--compression", default="none", help="of the producer (default: %(default)s)")
    parser.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    return parser.parse_args()


class Resident(threading.Thread):
    """Looks at the memory of a broker until it is told to stop; `peak` is the most that it saw."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._broker = broker
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(0.02):
            self.peak = max(self.peak, self._broker.resident_bytes())

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def fill(broker: Broker, chosen: argparse.Namespace) -> int:
    """Write the records, each key as often as any other; give the offset of a last record that makes
    Apache begin a new segment.
    """
    old_ms = int(time.time() * 1000) - 30 * SEGMENT_MS
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "linger.ms": 20,
        "batch.size": 200_000,
        "queue.buffering.max.messages": 500_000,
        "compression.type": chosen.compression,
        **QUIET,
    }
    producer = Producer(settings)
    value = os.urandom(chosen.value_bytes)
    for number in range(chosen.records):
        # a stride that is no factor of the keys: near records have different keys
        key = b"key-%09d" % (number * 7919 % chosen.keys)
        while True:
            try:
                producer.produce(TOPIC, value, key, 0, timestamp=old_ms)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0
    producer.produce(TOPIC, b"", b"last", 0, timestamp=old_ms + 2 * SEGMENT_MS)
    assert producer.flush(60) == 0
    return int(chosen.records)


def on_disk(broker: Broker) -> int:
    files = [path for path in (broker.home / "data").rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files)


def measure(broker: Broker, chosen: argparse.Namespace) -> Figures:
    create_topic(
        broker.bootstrap,
        TOPIC,
        1,
        **{
            "cleanup.policy": "delete",
            "segment.ms": str(SEGMENT_MS),
            "min.cleanable.dirty.ratio": "0",
        },
    )
    last = fill(broker, chosen)
    time.sleep(SETTLE_SECONDS)
    figures = {
        "on the disk before, MB": on_disk(broker) / MB,
        "memory before, MB": broker.resident_bytes() / MB,
    }
    resident, cpu = Resident(broker), broker.cpu_seconds()
    resident.start()
    began = time.perf_counter()
    configure_topic(broker.bootstrap, TOPIC, cleanup_policy="compact")
    while compacted_to(broker, TOPIC) < last:
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    resident.stop()
    figures["seconds"] = seconds
    figures["records a second"] = chosen.records / seconds
    figures["CPU seconds"] = broker.cpu_seconds() - cpu
    figures["memory at most, MB"] = resident.peak / MB
    time.sleep(SETTLE_SECONDS)
    figures["on the disk after, MB"] = on_disk(broker) / MB
    return figures


# the memory is Kafka's default, which the script that starts Apache's broker for tests lowers
CLEANER = {"log.cleaner.backoff.ms": "200", "log.cleaner.dedupe.buffer.size": str(128 << 20)}


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    results = {}
    for name in chosen.brokers:
        with tempfile.TemporaryDirectory() as home:
            broker = Broker(Path(home), BROKERS[name], CLEANER)
            broker.start()
            try:
                results[name] = measure(broker, chosen)
            finally:
                broker.kill()
    table = Table(box=box.MARKDOWN)
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right")
    for what in next(iter(results.values())):
        digits = 1 if "seconds" in what else 0
        table.add_row(what, *(f"{figures[what]:,.{digits}f}" for figures in results.values()))
    console = Console(width=120)
    console.print(
        f"{chosen.records:,} records of {chosen.value_bytes} bytes, {chosen.keys:,} keys; "
        f"{os.cpu_count()} CPUs, {platform.machine()}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
