"""What dead letters cost: `make bench-dlq`.

A share consumer of confluent-kafka settles a topic one record by one, each tenth rejected: without a
dead-letter topic, with one, and with letters that carry their records. A round ends when everything is
settled and every letter is there, or when its time is over; the brokers take turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benches.apache import as_kafka_starts_it
from confluent_kafka import Producer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.differential.dlq.observe import progress
from tests.differential.dlq.side import ALLOWED, Side
from tests.harness.clients import ACCEPT, QUIET, REJECT, share_consumer

from sharecore.protocol import ApiKey

BROKERS = {"sharecore": "sharecore", "Apache Kafka 4.4.0": "apache"}
SOURCE = "source"
MODES = ("without", "letters", "letters that carry the record")
SETTINGS = {
    "group.share.partition.max.record.locks": "4000",
    "share.coordinator.state.topic.num.partitions": "1",
}
_TENTH = 10
_LATEST = -1


class Figures(NamedTuple):
    """One round.

    Attributes:
        rate: records a second.
        left: records that were not settled when the time was over.
        missing: letters that were not there then.
    """

    rate: float
    cpu_s: float
    state_bytes: int
    left: int
    missing: int

    def cells(self) -> list[str]:
        """What the table shows."""
        rate = f"{self.rate:,.0f}"
        if self.left or self.missing:
            rate += f" ({self.left:,} records left, {self.missing:,} letters)"
        return [rate, f"{self.cpu_s:.2f}", f"{self.state_bytes / 1e6:.2f}"]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-dlq", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="of each round (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=100, help="of each value (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of both topics (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="that a round may take (default: %(default)s)"
    )
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
    asked = [{"partition_index": index, "timestamp": _LATEST} for index in range(partitions)]
    topics = [{"name": topic, "partitions": asked}]
    answer = side.ask(ApiKey.LIST_OFFSETS, 7, replica_id=-1, topics=topics)
    return sum(part.offset for part in answer.topics[0].partitions)


def measure(side: Side, mode: str, chosen: argparse.Namespace, show: Callable[[int], None]) -> Figures:
    """One group settles all records.

    Args:
        show: called with how many are settled.
    """
    number = MODES.index(mode)
    group, queue = f"group-{number}", f"dlq.{number}"
    if number:
        side.create(queue, chosen.partitions, ALLOWED)
    side.group(group, queue if number else None, copy=number == 2)
    before, cpu = state_bytes(side), side.broker.cpu_seconds()
    delivered, left = 0, chosen.records
    settings = {"share.acknowledgement.mode": "explicit"}
    with share_consumer(side.broker.bootstrap, group, [SOURCE], **settings) as consumer:
        began = time.monotonic()
        until = began + chosen.seconds
        while left and time.monotonic() < until:
            messages = consumer.poll(1.0 if delivered < chosen.records else 0.02)
            if messages and not delivered:
                began = time.monotonic()
            for message in messages:
                reject = (message.offset() or 0) % _TENTH == 0
                consumer.acknowledge(message, REJECT if reject else ACCEPT)
            delivered += len(messages)
            show(min(delivered, chosen.records))
            if delivered < chosen.records:
                consumer.commit_async()
            else:
                # what was handed over without waiting is lost with the consumer; some may come again
                consumer.commit_sync(30)
                left = unsettled(side, group)
    side.reconnect()
    wanted = rejected(chosen) if number else 0
    while (missing := wanted - (letters(side, queue, chosen.partitions) if number else 0)) > 0:
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    seconds = time.monotonic() - began
    cpu, grown = side.broker.cpu_seconds() - cpu, state_bytes(side) - before
    return Figures((chosen.records - left) / seconds, cpu, grown, left, max(missing, 0))


def unsettled(side: Side, group: str) -> int:
    """Records that a group has not settled, those whose letters are not written among them."""
    return sum(lag for _, lag in progress(side, group, SOURCE).values())


def rejected(chosen: argparse.Namespace) -> int:
    """How many records have an offset that is rejected."""
    whole, rest = divmod(chosen.records, chosen.partitions)
    return sum(-(-(whole + (index < rest)) // _TENTH) for index in range(chosen.partitions))


def _show(progress: Progress, task: TaskID, settled: int) -> None:
    progress.update(task, completed=settled)


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    table = Table(
        "", *(f"{name}: {what}" for name in chosen.brokers for what in ("records/s", "CPU s", "state MB"))
    )
    console = Console(width=160)
    found: dict[tuple[str, str], Figures] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="bench-dlq-") as home,
        Progress(*columns, console=console) as progress,
    ):
        sides = {name: Side(Path(home) / BROKERS[name], BROKERS[name], SETTINGS) for name in chosen.brokers}
        try:
            for name, side in sides.items():
                side.start()
                progress.console.print(f"{name}: the topic is filled")
                fill(side, SOURCE, chosen)
            for mode in MODES:
                for name, side in sides.items():
                    task = progress.add_task(f"{name}, {mode}", total=chosen.records)
                    show = partial(_show, progress, task)
                    found[name, mode] = measure(side, mode, chosen, show)
                    progress.console.print(f"{name}, {mode}: {found[name, mode]}")
        finally:
            for side in sides.values():
                side.stop()
    for mode in MODES:
        table.add_row(mode, *(cell for name in chosen.brokers for cell in found[name, mode].cells()))
    console.print(
        f"{chosen.records:,} records of {chosen.bytes} bytes, each tenth rejected; "
        f"{os.cpu_count()} cores, Python {platform.python_version()}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
