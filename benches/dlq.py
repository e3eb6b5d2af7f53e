"""What dead letters cost: `make bench-dlq`.

A share consumer of confluent-kafka settles a topic one record by one, each tenth rejected: without a
dead-letter topic, with one, and with letters that carry their records. A round ends when everything is
settled and every letter is there; the brokers take turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table
from tests.differential.dlq.side import ALLOWED, Side
from tests.harness.clients import ACCEPT, QUIET, REJECT, share_consumer

from sharecore.protocol import ApiKey

BROKERS = {"sharecore": "sharecore", "Apache Kafka 4.4.0": "apache"}
MODES = ("without", "letters", "letters that carry the record")
SETTINGS = {
    "group.share.partition.max.record.locks": "4000",
    "share.coordinator.state.topic.num.partitions": "1",
}
_TENTH = 10
_SECONDS_MAX = 600.0


class Figures(NamedTuple):
    """One round."""

    rate: float
    cpu_s: float
    state_bytes: int


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-dlq", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="of each round (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=100, help="of each value (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of both topics (default: %(default)s)")
    parser.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    return parser.parse_args()


def fill(side: Side, topic: str, chosen: argparse.Namespace) -> None:
    """Records with keys, evenly over the partitions."""
    side.create(topic, chosen.partitions)
    producer = Producer({"bootstrap.servers": side.broker.bootstrap, "linger.ms": 20, **QUIET})
    value = random.Random(7).randbytes(chosen.bytes)
    for number in range(chosen.records):
        while True:
            try:
                producer.produce(topic, value, b"%d" % number, partition=number % chosen.partitions)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def state_bytes(side: Side) -> int:
    """Bytes that the share-state topic holds."""
    answer = side.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=None)
    return sum(
        part.partition_size
        for found in answer.results
        for topic in found.topics
        if topic.name == "__share_group_state"
        for part in topic.partitions
    )


def letters(side: Side, topic: str, partitions: int) -> int:
    """How many letters there are."""
    consumer = Consumer({"bootstrap.servers": side.broker.bootstrap, "group.id": "count", **QUIET})
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=20)[1]
        for index in range(partitions)
    ]
    consumer.close()
    return sum(ends)


def measure(side: Side, source: str, mode: str, chosen: argparse.Namespace) -> Figures:
    """One group settles all records."""
    number = MODES.index(mode)
    group, queue = f"group-{number}", f"dlq.{number}"
    if number:
        side.create(queue, chosen.partitions, ALLOWED)
    side.group(group, queue if number else None, copy=number == 2)
    before, cpu = state_bytes(side), side.broker.cpu_seconds()
    left, rejected = chosen.records, 0
    until = time.monotonic() + _SECONDS_MAX
    settings = {"share.acknowledgement.mode": "explicit"}
    with share_consumer(side.broker.bootstrap, group, [source], **settings) as consumer:
        began = None
        while left:
            assert time.monotonic() < until, f"{left} records are not settled"
            messages = consumer.poll(1.0)
            began = began or time.monotonic()
            for message in messages:
                reject = (message.offset() or 0) % _TENTH == 0
                rejected += reject
                consumer.acknowledge(message, REJECT if reject else ACCEPT)
            left -= len(messages)
            consumer.commit_async()
        consumer.commit_sync(30)
    assert began is not None
    while number and letters(side, queue, chosen.partitions) < rejected:
        assert time.monotonic() < until, "letters are missing"
        time.sleep(0.02)
    seconds = time.monotonic() - began
    return Figures(chosen.records / seconds, side.broker.cpu_seconds() - cpu, state_bytes(side) - before)


def main() -> None:
    chosen = options()
    table = Table(
        "", *(f"{name}: {what}" for name in chosen.brokers for what in ("records/s", "CPU s", "state MB"))
    )
    found: dict[tuple[str, str], Figures] = {}
    with tempfile.TemporaryDirectory(prefix="bench-dlq-") as home:
        sides = {name: Side(Path(home) / BROKERS[name], BROKERS[name], SETTINGS) for name in chosen.brokers}
        try:
            for side in sides.values():
                side.start()
                fill(side, "source", chosen)
            for mode in MODES:
                for name, side in sides.items():
                    found[name, mode] = measure(side, "source", mode, chosen)
        finally:
            for side in sides.values():
                side.stop()
    for mode in MODES:
        cells = [
            cell
            for name in chosen.brokers
            for cell in (
                f"{found[name, mode].rate:,.0f}",
                f"{found[name, mode].cpu_s:.2f}",
                f"{found[name, mode].state_bytes / 1e6:.2f}",
            )
        ]
        table.add_row(mode, *cells)
    console = Console(width=160)
    console.print(
        f"{chosen.records:,} records of {chosen.bytes} bytes, each tenth rejected; "
        f"{os.cpu_count()} cores, Python {platform.python_version()}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
