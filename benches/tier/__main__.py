"""One and three nodes in front of Apache Kafka beside that cluster, Apache 4.3.1's share groups with as many
replicas, and sharecore alone; or, with `--take-over`, how long many share partitions take to be led again.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.broker.steps import PARTITIONS, RECORD_BYTES, STEPS, Measured, Run
from benches.machine import machine
from benches.tier.steps import steps_of
from benches.tier.take_over import take_over
from rich import box
from rich.console import Console
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.tier import VERSIONS, Cluster, Nodes

UPSTREAM, NODE, NODES, APACHE, ALONE = (
    "their cluster directly",
    "one node",
    "three nodes",
    "Apache 4.3.1",
    "sharecore alone",
)
_CHOICES = (*(name for name in STEPS if name != "latency"), "share-many", "latency")
Figures = dict[tuple[str, str], dict[str, list[float]]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-tier", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="records a step")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the table shows medians")
    parser.add_argument("--upstream", choices=VERSIONS, default="3.9.1", help="version of the nodes' cluster")
    parser.add_argument(
        "--only", nargs="+", choices=_CHOICES, default=list(_CHOICES), help="only these steps"
    )
    parser.add_argument("--take-over", action="store_true", help="measure only a take-over")
    parser.add_argument("--groups", type=int, default=10, help="groups of a take-over")
    parser.add_argument("--partitions", type=int, default=1_000, help="partitions that each of them reads")
    return parser.parse_args()


class Several:
    """Nodes as one that is measured, with what makes and ends them."""

    def __init__(self, home: Path, cluster: Cluster, count: int) -> None:
        copies = {"sharecore.tier.replication.factor": "3", "sharecore.tier.min.insync.replicas": "2"}
        self._nodes = Nodes(home, cluster.bootstrap, **copies)
        for _ in range(count):
            self._nodes.add()

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self._nodes.made)

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in self._nodes.made)

    def start(self) -> None:
        self._nodes.start()

    def kill(self) -> None:
        self._nodes.kill()


class Bench:
    """Measures one subject after the other, as all together would be in each other's way."""

    def __init__(self, chosen: argparse.Namespace, console: Console) -> None:
        self.figures: Figures = defaultdict(lambda: defaultdict(list))
        self._chosen = chosen
        self._console = console
        self._round = 0

    def subject(self, name: str, broker: Measured, beside: Measured | None = None) -> None:
        """All steps of one.

        Args:
            beside: the cluster behind it, whose CPU time is told as well.
        """
        chosen = self._chosen
        steps = steps_of(name != UPSTREAM)
        self._round += 1
        run = Run(name, broker, chosen.records, self._round)
        for step, (title, work) in steps.items():
            if step not in chosen.only and step != "producer":
                continue
            self._console.print(f"{time.strftime('%X')} {step}: {name}", style="dim")
            brokers = {"CPU s": broker} | ({"CPU s of their cluster": beside} if beside is not None else {})
            before = {unit: each.cpu_seconds() for unit, each in brokers.items()}
            try:
                found = work(run)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                # the others' figures are worth the wait all the same
                self._console.print(f"{step}: {name}: {error}", style="red")
                continue
            for unit, value in found.items():
                self.figures[title, unit][name].append(value)
            for unit, each in brokers.items():
                self.figures[title, unit][name].append(each.cpu_seconds() - before[unit])

    def round(self, home: Path) -> None:
        """All subjects, once."""
        cluster = Cluster(home / "cluster", self._chosen.upstream)
        try:
            cluster.start()
            self.subject(UPSTREAM, cluster)
            for name, count in ((NODE, 1), (NODES, 3)):
                nodes = Several(home / name, cluster, count)
                try:
                    nodes.start()
                    self.subject(name, nodes, cluster)
                finally:
                    nodes.kill()
        finally:
            cluster.kill()
        replicas = {f"share.coordinator.state.topic.{key}": value for key, value in _REPLICAS.items()}
        for name, other in (
            (APACHE, Cluster(home / "apache", "4.3.1", replicas)),
            (ALONE, Broker(home / "alone")),
        ):
            try:
                other.start()
                self.subject(name, other)
            finally:
                other.kill()


_REPLICAS = {"replication.factor": "3", "min.isr": "2"}


def main() -> None:
    chosen = options()
    console = Console(width=max(150, Console().width))
    where = machine()
    with tempfile.TemporaryDirectory() as scratch:
        if chosen.take_over:
            found = take_over(Path(scratch), chosen.upstream, chosen.groups, chosen.partitions)
            console.print(f"two nodes in front of {chosen.upstream}, one is killed; {where}")
            for what, value in found.items():
                console.print(f"| {what} | {value:,.1f} |")
            return
        as_kafka_starts_it()
        bench = Bench(chosen, console)
        for number in range(chosen.rounds):
            bench.round(Path(scratch) / str(number))
    load = f"{chosen.records:,} records of {RECORD_BYTES} bytes, {PARTITIONS} partitions, three replicas"
    console.print(f"{load}, but for sharecore alone; nodes in front of {chosen.upstream}; {where}")
    console.print(table(bench.figures, (UPSTREAM, NODE, NODES, APACHE, ALONE)))


def table(figures: Figures, names: Sequence[str]) -> Table:
    shown = Table(box=box.MARKDOWN)
    for heading in ("step", "figure"):
        shown.add_column(heading, no_wrap=True)
    for name in names:
        shown.add_column(name, justify="right")
    last = ""
    for (title, unit), by_subject in figures.items():
        cells = []
        for name in names:
            values = by_subject.get(name)
            found = statistics.median(values) if values else None
            cells.append("" if found is None else f"{found:,.0f}" if found >= 100 else f"{found:.2f}")
        shown.add_row(title if title != last else "", unit, *cells)
        last = title
    return shown


if __name__ == "__main__":
    main()
