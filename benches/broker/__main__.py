"""sharecore and Apache Kafka side by side on this machine, in one run, as one table: `make bench-broker`."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.broker.steps import PARTITIONS, RECORD_BYTES, STEPS, Run
from benches.machine import machine
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.harness.broker import Broker

BROKERS = {
    "sharecore, fsync": ("sharecore", ()),
    "sharecore, os": ("sharecore", ("--durability", "os")),
    "Apache Kafka 4.3.1": ("apache", ()),
}
LIFE = "broker"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-broker", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=2_000_000, help="records a step (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the table shows medians")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), help="only these steps")
    parser.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    parser.add_argument(
        "--beside", metavar="PROGRAM", help="another `sharecore` (a build of before), with fsync, as a column"
    )
    return parser.parse_args()


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    # every step but the latency's reads what the producer wrote
    steps = [name for name in STEPS if name in chosen.only or name == "producer"]
    figures: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    if chosen.beside:
        chosen.brokers.insert(1, chosen.beside)
    console = Console(width=max(160, Console().width))
    columns = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with tempfile.TemporaryDirectory() as scratch, Progress(*columns, console=console) as progress:
        task = progress.add_task("starting", total=len(chosen.brokers) * (1 + len(steps) * chosen.rounds))
        runs: list[Run[Broker]] = []
        try:
            for name in chosen.brokers:
                progress.update(task, description=f"start: {name}")
                home = Path(scratch) / str(len(runs))
                if name == chosen.beside:
                    broker = Broker(home, program=chosen.beside)
                else:
                    kind, arguments = BROKERS[name]
                    broker = Broker(home, kind, {}, arguments)
                runs.append(Run(name, broker, chosen.records))
                figures[LIFE, "start to first answer, s"][name].append(broker.start())
                figures[LIFE, "resident at rest, MB"][name].append(broker.resident_bytes() / 1e6)
                progress.advance(task)
            for number in range(chosen.rounds):
                for step in steps:
                    # the brokers take turns within a step: a machine that slows down slows all of them
                    for run in runs:
                        progress.update(task, description=f"{step}: {run.name}")
                        measure(replace(run, round=number), step, figures)
                        progress.advance(task)
            for run in runs:
                figures[LIFE, "resident after all steps, MB"][run.name].append(
                    run.broker.resident_bytes() / 1e6
                )
        finally:
            for run in runs:
                run.broker.kill()
    load = f"{chosen.records:,} records of {RECORD_BYTES} bytes, {PARTITIONS} partitions"
    console.print(f"{load}, {chosen.rounds} round(s); {machine()}")
    console.print(table(figures, chosen))


def measure(run: Run[Broker], step: str, figures: dict[tuple[str, str], dict[str, list[float]]]) -> None:
    title, work = STEPS[step]
    before = run.broker.cpu_seconds()
    for unit, value in work(run).items():
        figures[title, unit][run.name].append(value)
    figures[title, "broker's CPU s"][run.name].append(run.broker.cpu_seconds() - before)


def table(figures: dict[tuple[str, str], dict[str, list[float]]], chosen: argparse.Namespace) -> Table:
    shown = Table(box=box.MARKDOWN)
    shown.add_column("step", no_wrap=True)
    shown.add_column("figure", no_wrap=True)
    for name in chosen.brokers:
        shown.add_column(name, justify="right")
    last = ""
    for (title, unit), by_broker in sorted(figures.items(), key=lambda item: item[0][0] == LIFE):
        cells = [
            f"{value:,.0f}" if (value := statistics.median(by_broker[name])) >= 100 else f"{value:.2f}"
            for name in chosen.brokers
        ]
        shown.add_row(title if title != last else "", unit, *cells)
        last = title
    return shown


if __name__ == "__main__":
    main()
