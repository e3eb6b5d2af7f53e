"""One record a request, beside Apache Kafka, NATS JetStream and Redis Streams: `make bench-requests`."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.machine import Stolen, machine, sync_ms
from benches.requests.others import NatsServer, RedisServer, Server, found
from benches.requests.subject import KafkaSubject, Subject
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.harness.broker import ROOT, Broker

KAFKA = {
    "sharecore, fsync": ("sharecore", ()),
    "sharecore, os": ("sharecore", ("--durability", "os")),
    "Apache Kafka 4.3.1": ("apache", ()),
}
OTHERS: dict[str, type[Server]] = {"NATS JetStream": NatsServer, "Redis Streams, fsync": RedisServer}
STEPS = {
    "produce": "one record a Produce",
    "share": "one record a ShareFetch, a ShareAcknowledge for it",
    "share-ride": "one record a ShareFetch, acknowledged with the next",
    "end-to-end": "from a producer to a share consumer, records/s",
}
FIGURES = {
    "requests_s": "records/s",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "broker_cpu_us": "broker's CPU µs a record",
    "broker_cores": "broker's cores",
    "generator_cpu_us": "load generator's CPU µs a record",
}
PARTITIONS = 16
Run = tuple[str, int]
"""A step and its clients."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-requests", description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 20, 100, 1000])
    parser.add_argument("--seconds", type=float, default=5, help="of each run, behind a second of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the table shows medians")
    parser.add_argument("--rate", type=int, default=1000, help="records a second end to end")
    parser.add_argument("--records", type=int, default=500_000, help="written before they are shared")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--brokers", nargs="+", choices=[*KAFKA, *OTHERS], default=[*KAFKA, *OTHERS])
    parser.add_argument(
        "--beside",
        metavar="PROGRAM",
        help="another `sharecore`, measured in turns with the first one: before and after a change",
    )
    return parser.parse_args()


def generator() -> str:
    """Return the load generator, built."""
    target = ROOT / "benches/requests/target"
    manifest = str(ROOT / "benches/requests/Cargo.toml")
    command = ["cargo", "build", "-q", "--release", "--locked", "--manifest-path", manifest]
    subprocess.run([*command, "--target-dir", str(target)], check=True)
    return str(target / "release/small-requests")


def subjects(chosen: argparse.Namespace, scratch: Path, console: Console) -> Iterator[tuple[str, Subject]]:
    program = generator()
    kafka = {
        name: Broker(scratch / str(number), kind, {}, more)
        for number, (name, (kind, more)) in enumerate(KAFKA.items())
    }
    if chosen.beside:
        chosen.brokers.insert(1, chosen.beside)
        kafka[chosen.beside] = Broker(scratch / "beside", "sharecore", program=chosen.beside)
    for name in chosen.brokers:
        if name in kafka:
            yield name, KafkaSubject(program, kafka[name], PARTITIONS)
        elif found(OTHERS[name].command):
            home = scratch / name
            home.mkdir()
            yield name, OTHERS[name](program, home, PARTITIONS)
        else:
            console.print(f"{OTHERS[name].command} is not installed: no figures of {name}")


def runs(chosen: argparse.Namespace) -> Iterator[Run]:
    for step in STEPS:
        if step in chosen.only:
            yield from ((step, count) for count in (chosen.clients if step != "end-to-end" else [1]))


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(160, Console().width))
    columns = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    figures: dict[tuple[Run, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    started: dict[str, Subject] = {}
    with tempfile.TemporaryDirectory() as directory, Progress(*columns, console=console) as progress:
        task = progress.add_task("starting")
        try:
            for name, subject in subjects(chosen, Path(directory), console):
                started[name] = subject
                subject.start()
                if chosen.only != ["produce"]:
                    progress.update(task, description=f"fill: {name}")
                    subject.fill(chosen.records)
            able = [
                (run, name) for run in runs(chosen) for name in started if run[0] in started[name].protocols
            ]
            progress.update(task, total=len(able) * chosen.rounds)
            stolen = Stolen()
            for number in range(chosen.rounds):
                # the brokers take turns within a step: a machine that slows down slows all of them
                for run, name in able:
                    step, count = run
                    progress.update(task, description=f"{STEPS[step]}, {count}: {name}")
                    measured = started[name].measure(step, count, chosen.seconds, chosen.rate, number)
                    for figure in FIGURES:
                        figures[run, figure][name].append(measured[figure])
                    progress.advance(task)
            stolen_percent = stolen.percent
            progress.update(task, description="the disk alone")
            median, late = sync_ms(Path(directory))
            for name, subject in started.items():
                console.print(f"{name}: {subject.resident_bytes() / 1e6:.0f} MB resident at the end")
        finally:
            for subject in started.values():
                subject.kill()
    load = (
        f"records of 100 bytes, {PARTITIONS} partitions; {chosen.seconds:g} s a run, {chosen.rounds} round(s)"
    )
    console.print(f"{load}; {machine()}")
    where = f"a small write is synced in {median:.2f} ms, p99 {late:.2f} ms, on the disk alone"
    console.print(f"{where}; {stolen_percent:.1f} % of the CPUs' time was stolen")
    console.print(table(figures, list(started), chosen.rate))


def table(figures: dict[tuple[Run, str], dict[str, list[float]]], names: list[str], rate: int) -> Table:
    """Return one row for each step, number of clients and figure; a dash stands for a missing value."""
    shown = Table(box=box.MARKDOWN)
    for title in ("step", "clients", "figure"):
        shown.add_column(title, no_wrap=True)
    for name in names:
        shown.add_column(Path(name).name if "/" in name else name, justify="right")
    last: Run | None = None
    for ((step, count), figure), by_broker in figures.items():
        title = STEPS[step] + (f": {rate:,}" if step == "end-to-end" else "")
        values = [statistics.median(by_broker[name]) if name in by_broker else None for name in names]
        cells = [
            "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}" for value in values
        ]
        shown.add_row(
            *((title, f"{count:,}") if (step, count) != last else ("", "")), FIGURES[figure], *cells
        )
        last = step, count
    return shown


if __name__ == "__main__":
    main()
