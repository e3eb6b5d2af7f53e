"""A home in a bucket beside NATS JetStream, Redis and Apache Kafka with replicas: `make bench-bucket`.

The bucket is versitygw behind a relay that gives PUTs the times of S3. Its processes are not counted: they
stand for S3.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.bucket import alone, load, outages
from benches.bucket.latency import counts
from benches.bucket.subjects import Alone, ApacheCluster, Home, NatsCluster, RedisPair
from benches.machine import Stolen, machine, sync_ms
from benches.requests.__main__ import FIGURES, Run, generator, table
from benches.requests.others import found
from benches.requests.subject import Subject
from rich import box
from rich.console import Console
from rich.table import Table
from tests.bucket.versitygw import credentials, versitygw
from tests.harness.s3 import BUCKET

STEPS = ("produce", "share", "end-to-end")
LOADS = ("batches", "cost")
"""Of sharecore alone."""
PARTITIONS = 16
HOME, COPY, FSYNC = "sharecore, bucket and standby", "sharecore, fsync and copy", "sharecore, fsync"
NATS, REDIS, APACHE = "NATS JetStream, 3 replicas", "Redis, WAIT 1", "Apache Kafka, 3 brokers"
SUBJECTS = (FSYNC, COPY, HOME, NATS, REDIS, APACHE)
OUTAGES = {
    "produced": "seconds to the first confirmed record, p50",
    "longest": "the longest",
    "acknowledged": "seconds to the first confirmed acknowledgement, p50",
    "lost": "confirmed records lost",
    "again": "acknowledged records delivered again",
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-bucket", description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 20, 100])
    parser.add_argument("--seconds", type=float, default=5, help="of each run, after a second of warm-up")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the table shows medians")
    parser.add_argument("--rate", type=int, default=100, help="records a second end to end")
    parser.add_argument("--records", type=int, default=50_000, help="written before they are shared")
    parser.add_argument("--kills", type=int, default=5, help="of each leader; 0: none")
    parser.add_argument("--p50", type=float, default=25, help="of a PUT, ms; 0: no delay")
    parser.add_argument("--p99", type=float, default=120, help="of a PUT, ms")
    parser.add_argument(
        "--rates", type=int, nargs="+", default=[1, 100, 1000], help="records/s whose cost is shown"
    )
    parser.add_argument(
        "--cost-seconds", type=float, default=60, help="of each rate, after 70 s at that rate"
    )
    parser.add_argument("--only", nargs="+", choices=STEPS + LOADS, default=list(STEPS + LOADS))
    parser.add_argument("--brokers", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--seed", type=int, default=1, help="of the moments of kills")
    return parser.parse_args()


@contextmanager
def bucket(scratch: Path, p50_ms: float, p99_ms: float) -> Iterator[int]:
    """Run a bucket with the times of S3; brokers find it by their environment.

    Yields:
        The port of its relay.
    """
    with versitygw(scratch / "server") as endpoint:
        command = [sys.executable, "-m", "benches.bucket.latency", endpoint.rpartition(":")[2]]
        command += ["--p50", str(p50_ms), "--p99", str(p99_ms)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as relay:
            try:
                assert relay.stdout is not None
                port = int(relay.stdout.readline())
                os.environ.update(credentials(), AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
                yield port
            finally:
                relay.kill()


def subject(name: str, program: str, home: Path) -> Subject | None:
    """Return what to measure; None if its program is not installed."""
    url = f"s3://{BUCKET}/{home.name}"
    match name:
        case "sharecore, fsync":
            return Alone(program, home, PARTITIONS)
        case "sharecore, fsync and copy":
            return Alone(program, home, PARTITIONS, {"sharecore.bucket.url": url})
        case "sharecore, bucket and standby":
            return Home(program, home, PARTITIONS, url)
        case "NATS JetStream, 3 replicas":
            return NatsCluster(program, home, PARTITIONS) if found(NatsCluster.command) else None
        case "Redis, WAIT 1":
            return RedisPair(program, home, PARTITIONS) if found(RedisPair.command) else None
        case _:
            return ApacheCluster(program, home, PARTITIONS)


def runs(chosen: argparse.Namespace) -> Iterator[Run]:
    for step in STEPS:
        if step in chosen.only:
            yield from ((step, count) for count in (chosen.clients if step != "end-to-end" else [1]))


def measure(chosen: argparse.Namespace, scratch: Path, console: Console) -> None:
    """Measure one system after the other: together their processes would not fit on two CPUs."""
    program = generator()
    figures: dict[tuple[Run, str], dict[str, list[float]]] = {
        (run, figure): defaultdict(list) for run in runs(chosen) for figure in FIGURES
    }
    names = []
    for number, name in enumerate(chosen.brokers):
        measured = subject(name, program, scratch / f"b{number}")
        if measured is None:
            console.print(f"{name}: its server is not installed, so there are no figures")
            continue
        names.append(name)
        try:
            measured.start()
            if chosen.only != ["produce"]:
                measured.fill(chosen.records)
            for round_ in range(chosen.rounds):
                for step, count in runs(chosen):
                    if step not in measured.protocols:
                        continue
                    result = measured.measure(step, count, chosen.seconds, chosen.rate, round_)
                    for figure in FIGURES:
                        figures[(step, count), figure][name].append(result[figure])
            memory = measured.resident_bytes() / 1e6
            processes = len(measured.pids)
            console.print(f"{name}: {memory:.0f} MB resident at the end, {processes} process(es)")
        finally:
            measured.kill()
    console.print(table(figures, names, chosen.rate))


def interrupt(chosen: argparse.Namespace, scratch: Path, console: Console) -> None:
    """Kill leaders under load."""
    measured: dict[str, outages.Outages] = {}
    if HOME in chosen.brokers:
        url = f"s3://{BUCKET}/outages"
        measured[HOME] = outages.of_home(scratch / "k0", url, chosen.kills, chosen.seed)
    if NATS in chosen.brokers and found(NatsCluster.command):
        measured[NATS] = outages.of_nats("", scratch / "k1", chosen.kills, chosen.seed)
    if APACHE in chosen.brokers:
        measured[APACHE] = outages.of_apache(scratch / "k2", chosen.kills, chosen.seed)
    shown = Table(box=box.MARKDOWN)
    shown.add_column(f"kill -9 of the leader, {chosen.kills} times", no_wrap=True)
    for name in measured:
        shown.add_column(name, justify="right")
    for figure, title in OUTAGES.items():
        values = [each[figure] for each in measured.values()]
        shown.add_row(title, *("-" if value is None else f"{value:.3g}" for value in values))
    console.print(shown)


@contextmanager
def started(measured: Subject) -> Iterator[None]:
    """Start brokers, and end them at last."""
    try:
        measured.start()
        yield
    finally:
        measured.kill()


def load_alone(chosen: argparse.Namespace, scratch: Path, port: int, console: Console) -> None:
    """Measure what sharecore does with large batches, and what it costs under a steady load."""
    if "batches" in chosen.only:
        speed = alone.megabytes_per_second(port, chosen.seconds)
        console.print(f"the bucket by itself, objects of 4 MiB, eight under way: {speed:,.0f} MB/s")
    program = generator()
    figures: dict[str, dict[str, load.Figures]] = defaultdict(dict)
    passed = partial(counts, port)
    for number, name in enumerate((FSYNC, COPY, HOME)):
        if name not in chosen.brokers:
            continue
        if "batches" in chosen.only and (measured := subject(name, program, scratch / f"l{number}")):
            with started(measured):
                title = f"{load.CLIENTS} producers in batches"
                figures[title][name] = load.batches(measured, chosen.seconds, passed)
        if "cost" in chosen.only and name != FSYNC:
            url = f"s3://{BUCKET}/cost-{number}"
            # as it is by default: the other steps may make more requests
            settings = {"sharecore.bucket.url": url, "sharecore.bucket.puts.per.second": "10"}
            home = scratch / f"c{number}"
            measured = (
                Home(program, home, PARTITIONS, url, settings)
                if name == HOME
                else Alone(program, home, PARTITIONS, settings)
            )
            with started(measured):
                for rate in chosen.rates:
                    title = f"{rate:,} records/s of 1 kB"
                    figures[title][name] = load.cost(measured, rate, chosen.cost_seconds, passed)
    for title, by_name in figures.items():
        shown = Table(box=box.MARKDOWN)
        shown.add_column(title, no_wrap=True)
        for name in by_name:
            shown.add_column(name, justify="right")
        for figure in next(iter(by_name.values())):
            shown.add_row(figure, *(f"{each[figure]:,.3g}" for each in by_name.values()))
        console.print(shown)


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(180, Console().width))
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        stolen = Stolen()
        with bucket(scratch, chosen.p50, chosen.p99) as port:
            if set(chosen.only) & set(LOADS):
                load_alone(chosen, scratch, port, console)
            if set(chosen.only) & set(STEPS):
                measure(chosen, scratch, console)
            if chosen.kills:
                interrupt(chosen, scratch, console)
        stolen_percent = stolen.percent
        median, late = sync_ms(scratch)
    put = f"a PUT takes {chosen.p50:g} ms (p50) and {chosen.p99:g} ms (p99)"
    load = (
        f"records of 100 bytes, {PARTITIONS} partitions; {chosen.seconds:g} s a run, {chosen.rounds} round(s)"
    )
    console.print(f"{load}; {put}; {machine()}")
    where = f"a small write is synced in {median:.2f} ms, p99 {late:.2f} ms, on the disk alone"
    loads = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    console.print(f"{where}; {stolen_percent:.1f} % of the CPUs' time was stolen; load {loads}")


if __name__ == "__main__":
    main()
