"""Durable share state: acknowledgements beside Apache Kafka 4.3.1, and recovery, as one table."""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.machine import machine
from benches.state.load import NotFinished, Settled, settle
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.harness.broker import ROOT, Broker

BROKERS = {
    "sharecore, fsync": ("sharecore", ()),
    "sharecore, os": ("sharecore", ("--durability", "os")),
    "Apache Kafka 4.3.1": ("apache", ()),
}
OURS = "sharecore, fsync"
UPDATES, UPDATES_MAX = 10, 500
"""Records behind the snapshot of a share partition: some, and as many as there can be by default."""
STEPS = ("one-by-one", "in-order", "wait", "recovery")
Step = tuple[str, Callable[[Broker, int], dict[str, float]]]
Row = tuple[str, str, dict[str, float]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-state", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="settled one by one (default: %(default)s)"
    )
    parser.add_argument(
        "--wait-records",
        type=int,
        default=50_000,
        help="settled with a wait after each poll (default: %(default)s)",
    )
    parser.add_argument(
        "--partitions", type=int, nargs="+", default=[1, 10, 1000], help="share partitions of the waits"
    )
    parser.add_argument(
        "--recover", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="share partitions"
    )
    parser.add_argument(
        "--runs", type=int, default=1000, help="runs of each share partition that is recovered"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the table shows medians")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    return parser.parse_args()


def steps(chosen: argparse.Namespace) -> Iterator[Step]:
    """What is measured on a running broker: a title, and what gives the figures of one round."""
    if "one-by-one" in chosen.only:
        yield (
            f"{chosen.records:,} records settled one by one, accept and reject in turn",
            lambda broker, round: flow(
                settle(broker, f"one-{round}", 1, chosen.records, in_turn=True, sync=False)
            ),
        )
    if "in-order" in chosen.only:
        yield (
            f"{chosen.records:,} records accepted in order",
            lambda broker, round: flow(
                settle(broker, f"all-{round}", 1, chosen.records, in_turn=False, sync=False)
            ),
        )
    if "wait" in chosen.only:
        for count in chosen.partitions:
            yield waits(count, chosen.wait_records)


def waits(partitions: int, records: int) -> Step:
    """Acknowledged poll by poll, each acknowledgement waited for."""

    def measure(broker: Broker, round: int) -> dict[str, float]:
        done = settle(broker, f"wait-{partitions}-{round}", partitions, records, in_turn=True, sync=True)
        hundredths = statistics.quantiles(done.waits, n=100)
        return {
            "durably acknowledged records/s": done.records / done.seconds,
            "acknowledged to durable, p50 ms": hundredths[49] * 1e3,
            "p99 ms": hundredths[98] * 1e3,
        }

    return (
        f"acknowledged poll by poll, {partitions:,} share partition{'s' if partitions > 1 else ''}",
        measure,
    )


def flow(done: Settled) -> dict[str, float]:
    """Return the figures of acknowledgements that nobody waits for."""
    return {
        "records/s": done.records / done.seconds,
        "broker's CPU s a million": done.cpu_seconds * 1e6 / done.records,
        "state log bytes a record": done.state_bytes / done.records,
    }


def recovered(
    scratch: Path, share_partitions: int, updates: int, chosen: argparse.Namespace
) -> dict[str, float]:
    """Seconds and megabytes until a new process has all state again; our coordinator alone."""
    command = [sys.executable, "-m", "benches.state.recovery", str(scratch / "recovery")]
    subprocess.run(
        [*command, "fill", str(share_partitions), str(chosen.runs), str(updates)], cwd=ROOT, check=True
    )
    found = []
    for _ in range(chosen.rounds):
        run = [*command, "read", str(share_partitions)]
        shown = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        found.append([float(figure) for figure in shown.split()])
    shutil.rmtree(scratch / "recovery")
    seconds, cpu, megabytes = (statistics.median(column) for column in zip(*found, strict=True))
    return {
        "s": seconds,
        "CPU s": cpu,
        "CPU µs a share partition": cpu * 1e6 / share_partitions,
        "memory, MB": megabytes,
    }


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(150, Console().width))
    columns = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    rows: list[Row] = []
    on_brokers = list(steps(chosen))
    recoveries = [(count, UPDATES) for count in chosen.recover] + [(chosen.recover[0], UPDATES_MAX)]
    if "recovery" not in chosen.only:
        recoveries = []
    with tempfile.TemporaryDirectory() as directory, Progress(*columns, console=console) as progress:
        total = len(on_brokers) * chosen.rounds * len(BROKERS) + len(recoveries)
        task = progress.add_task("starting", total=total)

        def advance(text: str) -> None:
            progress.update(task, description=text)

        scratch = Path(directory)
        brokers = {
            name: Broker(scratch / str(number), kind, {}, arguments)
            for number, (name, (kind, arguments)) in enumerate(BROKERS.items())
            if on_brokers
        }
        try:
            for broker in brokers.values():
                broker.start()
            for title, measure in on_brokers:
                figures: dict[str, dict[str, list[float]]] = {}
                for round in range(chosen.rounds):
                    # the brokers take turns: a machine that slows down slows both
                    for name, broker in brokers.items():
                        advance(f"{title}: {name}")
                        try:
                            measured = measure(broker, round)
                        except NotFinished as error:
                            console.print(f"{name}, {title}: {error}")
                            measured = {}
                        for unit, value in measured.items():
                            figures.setdefault(unit, {}).setdefault(name, []).append(value)
                        progress.advance(task)
                for unit, by_broker in figures.items():
                    rows.append(
                        (title, unit, {name: statistics.median(some) for name, some in by_broker.items()})
                    )
        finally:
            for broker in brokers.values():
                broker.kill()
        for share_partitions, updates in recoveries:
            each = f"{chosen.runs:,} runs and {updates} updates each"
            title = f"recovery of {share_partitions:,} share partitions, {each}"
            advance(title)
            for unit, value in recovered(scratch, share_partitions, updates, chosen).items():
                rows.append((title, unit, {OURS: value}))
            progress.advance(task)
    console.print(f"{chosen.rounds} round(s); {machine()}")
    console.print(table(rows))


def table(rows: list[Row]) -> Table:
    """Figures below 100 with two decimals, a dash where there is none."""
    shown = Table(box=box.MARKDOWN)
    shown.add_column("step", no_wrap=True)
    shown.add_column("figure", no_wrap=True)
    for name in BROKERS:
        shown.add_column(name, justify="right")
    last = ""
    for title, unit, figures in rows:
        cells = [
            "-"
            if (value := figures.get(name)) is None
            else f"{value:,.0f}"
            if value >= 100
            else f"{value:.2f}"
            for name in BROKERS
        ]
        shown.add_row(title if title != last else "", unit, *cells)
        last = title
    return shown


if __name__ == "__main__":
    main()
