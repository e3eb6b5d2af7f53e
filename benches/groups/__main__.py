"""Many members in many share groups over many partitions: what a heartbeat costs, and how long partitions
wait for a member: `make bench-groups`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.groups.members import LEAVE_EPOCH, Group, Rounds, all_at_once, open_groups
from benches.machine import machine
from confluent_kafka.admin import AdminClient, NewPartitions
from rich import box
from rich.console import Console
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, create_topic

BROKERS = {
    "sharecore, fsync": ("sharecore", ()),
    "sharecore, os": ("sharecore", ("--durability", "os")),
    "Apache Kafka 4.3.1": ("apache", ()),
}
TOPIC = "bench"
INTERVAL = 5.0
SECONDS_MAX = 120.0
Figures = dict[str, float]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-groups", description=__doc__)
    parser.add_argument("--groups", type=int, default=20, help="share groups (default: %(default)s)")
    parser.add_argument(
        "--members", type=int, default=100, help="members of each group (default: %(default)s)"
    )
    parser.add_argument(
        "--partitions", type=int, default=1000, help="of the one topic (default: %(default)s)"
    )
    parser.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    return parser.parse_args()


class Bench:
    """One broker, its groups, and what was measured.

    Seconds "until whole" count from the end of the change to the moment when each partition of each group is
    in the assignment that some member has been told.
    """

    def __init__(self, broker: Broker, chosen: argparse.Namespace) -> None:
        self.broker = broker
        self.chosen = chosen
        self.partitions: int = chosen.partitions
        self.figures: Figures = {}
        self.groups: list[Group] = []

    async def run(self) -> None:
        chosen = self.chosen
        self.groups = await open_groups(self.broker.port, chosen.groups, TOPIC)
        for group in self.groups:
            (first,) = group.add(1)
            await first.join_once_there()
        new = [member for group in self.groups for member in group.add(chosen.members - 1)]
        await self._measure("join", len(new), lambda: all_at_once(new))
        await self._whole("join")
        rounds = Rounds(self.groups, INTERVAL)
        cpu, began = self.broker.cpu_seconds(), time.perf_counter()
        await rounds.run(3 * INTERVAL)
        self._told("steady", rounds.took, self.broker.cpu_seconds() - cpu)
        self.figures["steady: CPU of the broker, %"] = (
            100 * (self.broker.cpu_seconds() - cpu) / (time.perf_counter() - began)
        )
        leaving = [group.members.pop() for group in self.groups for _ in range(chosen.members // 2)]
        await self._measure("leave", len(leaving), lambda: all_at_once(leaving, LEAVE_EPOCH))
        await self._whole("leave")
        back = [member for group in self.groups for member in group.add(chosen.members // 2)]
        await self._measure("join again", len(back), lambda: all_at_once(back))
        await self._whole("join again")
        self.partitions += chosen.partitions // 10
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, **QUIET})
        await asyncio.to_thread(
            admin.create_partitions([NewPartitions(TOPIC, self.partitions)])[TOPIC].result, 60
        )
        await self._whole("topic grows by a tenth")
        self.figures["resident, MB"] = self.broker.resident_bytes() / 1e6

    async def _measure(self, step: str, count: int, work: Callable[[], Awaitable[list[float]]]) -> None:
        cpu, began = self.broker.cpu_seconds(), time.perf_counter()
        await work()
        self.figures[f"{step}: {count} members at once, s"] = time.perf_counter() - began
        self.figures[f"{step}: CPU a member, µs"] = (self.broker.cpu_seconds() - cpu) / count * 1e6

    async def _whole(self, step: str) -> None:
        rounds = Rounds(self.groups, INTERVAL)
        self.figures[f"{step}: until whole, s"] = await rounds.until_whole(self.partitions, SECONDS_MAX)

    def _told(self, step: str, took: list[float], cpu: float) -> None:
        quantiles = statistics.quantiles(took, n=100)
        self.figures[f"{step}: a heartbeat, p50, ms"] = quantiles[49] * 1e3
        self.figures[f"{step}: a heartbeat, p99, ms"] = quantiles[98] * 1e3
        self.figures[f"{step}: CPU a heartbeat, µs"] = cpu / len(took) * 1e6


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(140, Console().width))
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, name in enumerate(chosen.brokers):
            kind, arguments = BROKERS[name]
            broker = Broker(Path(scratch) / str(number), kind, {}, arguments)
            broker.start()
            try:
                create_topic(broker.bootstrap, TOPIC, chosen.partitions)
                bench = Bench(broker, chosen)
                asyncio.run(bench.run())
                figures[name] = bench.figures
            finally:
                broker.kill()
    load = f"{chosen.groups} groups of {chosen.members} members over {chosen.partitions} partitions"
    console.print(f"{load}; a heartbeat a member every {INTERVAL:.0f} s; {machine()}")
    table = Table("figure", *chosen.brokers, box=box.MARKDOWN)
    for figure in figures[chosen.brokers[0]]:
        table.add_row(figure, *(f"{figures[name][figure]:.4g}" for name in chosen.brokers))
    console.print(table)


if __name__ == "__main__":
    main()
