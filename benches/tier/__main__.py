"""One and three nodes in front of Apache Kafka beside that cluster, Apache 4.3.1's share groups with as many
replicas, and sharecore alone; or, with `--take-over`, how long many share partitions take to be led again;
or, with `--limited`, three nodes beside one where each has the same part of a CPU.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.broker.steps import PARTITIONS, RECORD_BYTES, STEPS, Measured, Run
from benches.machine import machine
from benches.tier.limited import limited
from benches.tier.several import Several
from benches.tier.steps import steps_of
from benches.tier.take_over import take_over
from rich import box
from rich.console import Console
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.tier import VERSIONS, Cluster

UPSTREAM, NODE, NODES, APACHE, ALONE = (
    "their cluster directly",
    "one node",
    "three nodes",
    "Apache 4.3.1",
    "sharecore alone",
)
SUBJECTS = {"upstream": UPSTREAM, "node": NODE, "nodes": NODES, "apache": APACHE, "alone": ALONE}
_CHOICES = (*(name for name in STEPS if name != "latency"), "share-many", "latency")
_REPEATED = {"consumer", "share-java", "share-implicit", "share-many"}
"""Steps that read what is there, and may so be tried before they are counted."""
Figures = dict[tuple[str, str], dict[str, list[float]]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-tier", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="records a step")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the table shows medians")
    parser.add_argument("--upstream", choices=VERSIONS, default="3.9.1", help="version of the nodes' cluster")
    parser.add_argument(
        "--only", nargs="+", choices=_CHOICES, default=list(_CHOICES), help="only these steps"
    )
    parser.add_argument(
        "--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS), help="only these columns"
    )
    parser.add_argument(
        "--warm-up",
        type=int,
        default=0,
        metavar="TIMES",
        help="how often a step that reads is done before it counts: a JVM is slow at first",
    )
    parser.add_argument(
        "--brokers", type=int, choices=(1, 3), default=3, help="of each cluster, and replicas of its state"
    )
    parser.add_argument("--take-over", action="store_true", help="measure only a take-over")
    parser.add_argument(
        "--limited",
        type=float,
        metavar="SHARE",
        help="measure nodes with so much of a CPU each (0.1; as root)",
    )
    parser.add_argument("--groups", type=int, default=10, help="groups of a take-over")
    parser.add_argument("--partitions", type=int, default=1_000, help="partitions that each of them reads")
    return parser.parse_args()


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
            meters = {"CPU s": broker.cpu_seconds, "CPU s of the client": _client_cpu_seconds}
            if beside is not None:
                meters["CPU s of their cluster"] = beside.cpu_seconds
            times = 1 + chosen.warm_up * (step in _REPEATED)
            try:
                for turn in range(times):
                    before = {unit: meter() for unit, meter in meters.items()}
                    found = work(replace(run, turn=turn))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                # the others' figures are worth the wait all the same
                self._console.print(f"{step}: {name}: {error}", style="red")
                continue
            for unit, value in found.items():
                self.figures[title, unit][name].append(value)
            for unit, meter in meters.items():
                self.figures[title, unit][name].append(meter() - before[unit])

    def round(self, home: Path) -> None:
        """All subjects, once."""
        wanted = {SUBJECTS[each] for each in self._chosen.subjects}
        if wanted & {UPSTREAM, NODE, NODES}:
            self._tiers(home, wanted)
        apache = self._cluster(home / "apache", "4.3.1") if APACHE in wanted else None
        alone = Broker(home / "alone") if ALONE in wanted else None
        for name, other in ((APACHE, apache), (ALONE, alone)):
            if other is None:
                continue
            try:
                other.start()
                self.subject(name, other)
            finally:
                other.kill()

    def _tiers(self, home: Path, wanted: set[str]) -> None:
        """A cluster, and nodes in front of it."""
        cluster = self._cluster(home / "cluster", self._chosen.upstream)
        try:
            cluster.start()
            if UPSTREAM in wanted:
                self.subject(UPSTREAM, cluster)
            for name, count in ((NODE, 1), (NODES, 3)):
                if name not in wanted:
                    continue
                nodes = Several(home / name, cluster, count)
                try:
                    nodes.start()
                    self.subject(name, nodes, cluster)
                finally:
                    nodes.kill()
        finally:
            cluster.kill()

    def _cluster(self, home: Path, version: str) -> Cluster | Broker:
        if self._chosen.brokers == 1:
            return Broker(home, "apache", libs=VERSIONS[version])
        replicas = {f"share.coordinator.state.topic.{key}": value for key, value in _REPLICAS.items()}
        return Cluster(home, version, replicas if version == "4.3.1" else None)


def _client_cpu_seconds() -> float:
    """User and system time so far, of this process and of those that it has started and waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


_REPLICAS = {"replication.factor": "3", "min.isr": "2"}


def main() -> None:
    chosen = options()
    console = Console(width=max(150, Console().width))
    where = machine()
    with tempfile.TemporaryDirectory() as scratch:
        if chosen.take_over:
            found = take_over(Path(scratch), chosen.upstream, chosen.groups, chosen.partitions)
            _tell(console, f"two nodes in front of {chosen.upstream}, one is killed; {where}", found)
            return
        as_kafka_starts_it()
        if chosen.limited:
            warm_up = max(1, chosen.warm_up)
            found = limited(Path(scratch), chosen.upstream, chosen.records, chosen.limited, warm_up)
            each = f"nodes with {chosen.limited} of a CPU each in front of {chosen.upstream}"
            _tell(console, f"{each}; {where}", found)
            return
        bench = Bench(chosen, console)
        for number in range(chosen.rounds):
            bench.round(Path(scratch) / str(number))
    copies = "three brokers" if chosen.brokers == 3 else "one broker"
    load = f"{chosen.records:,} records of {RECORD_BYTES} bytes, {PARTITIONS} partitions, {copies}"
    console.print(f"{load}, but for sharecore alone; nodes in front of {chosen.upstream}; {where}")
    console.print(table(bench.figures, (UPSTREAM, NODE, NODES, APACHE, ALONE)))


def _tell(console: Console, title: str, found: dict[str, float]) -> None:
    console.print(title)
    for what, value in found.items():
        console.print(f"| {what} | {value:,.1f} |")


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
