"""Our share consumer and producer beside other clients, on one broker, in one run: `make bench-client`."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.machine import machine
from rich import box
from rich.console import Console
from rich.table import Table
from tests.harness import java
from tests.harness.broker import ROOT, Broker
from tests.harness.clients import configure_group, create_topic, produce

WORKERS = (("coroutine", 8), ("coroutine", 64), ("thread", 8))
CLIENTS = ("sharecore", "sharecore-blocking", "confluent", "java")
PARTITIONS = 4
RECORD_BYTES = 100
RATE, SECONDS = 1_000, 15
TITLES = {
    "batch": "accepted by the batch",
    "each": "accepted one by one",
    "latency": f"{RATE:,} records/s, accepted one by one",
    "produce": "produced and confirmed",
}
PRODUCERS = ("sharecore", "sharecore-blocking", "confluent")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-client", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="records a step (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="the table shows medians (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument(
        "--workers",
        nargs="+",
        metavar="TREE",
        help="instead: rates of workers without failures, of each tree with a package sharecore in turn; "
        "`installed` for the one that is installed",
    )
    parser.add_argument("--broker", choices=("sharecore", "apache"), default="sharecore")
    return parser.parse_args()


def command(client: str) -> list[str]:
    if client == "java":
        source = ROOT / "benches/client/JavaClient.java"
        heap = ("-Xmx512m", "-Xlog:disable", "-Xlog:all=error:stderr")
        return java.program(source, libs=java.CLIENT_LIBS, options=heap)
    return [sys.executable, "-m", "benches.client.programs", client]


def measure_producer(broker: Broker, client: str, records: int) -> dict[str, float]:
    program = [sys.executable, "-m", "benches.client.producers", client]
    return figures_of([*program, broker.bootstrap, "produced", str(records)])


def measure(broker: Broker, client: str, mode: str, number: int, records: int) -> dict[str, float]:
    group, topic = f"{client}-{mode}-{number}", "bench"
    configure_group(broker.bootstrap, group, share_auto_offset_reset="earliest")
    pacer = None
    if mode == "latency":
        topic, records = f"paced-{group}", RATE * SECONDS
        create_topic(broker.bootstrap, topic)
        pace = [
            sys.executable,
            "-m",
            "benches.broker.pacer",
            broker.bootstrap,
            topic,
            str(RATE),
            str(SECONDS),
        ]
        pacer = subprocess.Popen(pace, cwd=ROOT)
    arguments = [*command(client), mode, broker.bootstrap, group, topic, str(records)]
    try:
        return figures_of(arguments)
    finally:
        if pacer is not None:
            pacer.wait(60)


def figures_of(arguments: list[str]) -> dict[str, float]:
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(lines[-1])
    return figures


def rate(
    broker: Broker, tree: str, kind: str, concurrency: int, number: int, records: int
) -> dict[str, float]:
    """Run a worker of a tree over `records` records of the topic."""
    group = f"worker-{Path(tree).resolve().parent.name}-{kind}-{concurrency}-{number}"
    configure_group(broker.bootstrap, group, share_auto_offset_reset="earliest")
    arguments = (tree, kind, str(concurrency), broker.bootstrap, group, "bench", str(records))
    done = subprocess.run(
        [sys.executable, "-m", "benches.client.workers", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare_workers(broker: Broker, chosen: argparse.Namespace) -> None:
    """Measure workers of several trees in turn, so that what the machine does meanwhile meets them all."""
    table = Table("handler", "figure", *chosen.workers, box=box.MARKDOWN)
    for kind, concurrency in WORKERS:
        found: dict[str, list[dict[str, float]]] = defaultdict(list)
        for number in range(chosen.rounds):
            for tree in chosen.workers:
                found[tree].append(rate(broker, tree, kind, concurrency, number, chosen.records))
        for name in ("records/s", "CPU s a million"):
            medians = (statistics.median(each[name] for each in found[tree]) for tree in chosen.workers)
            table.add_row(f"{kind}, {concurrency} at once", name, *(f"{value:,.4g}" for value in medians))
    console = Console(width=max(140, Console().width))
    console.print(f"{chosen.records:,} records; medians of {chosen.rounds}; {machine()}")
    console.print(table)


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    figures: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as home:
        broker = Broker(Path(home), chosen.broker)
        broker.start()
        try:
            create_topic(broker.bootstrap, "bench", PARTITIONS)
            create_topic(broker.bootstrap, "produced", PARTITIONS)
            for partition in range(PARTITIONS):
                # what ends early leaves no record behind that others wait for
                share = chosen.records // PARTITIONS + 1
                produce(broker.bootstrap, "bench", (bytes(RECORD_BYTES) for _ in range(share)), partition)
            if chosen.workers:
                compare_workers(broker, chosen)
                return
            for mode in chosen.only:
                for number in range(chosen.rounds):
                    for client in chosen.clients:
                        if mode != "produce":
                            measured = measure(broker, client, mode, number, chosen.records)
                        elif client in PRODUCERS:
                            measured = measure_producer(broker, client, chosen.records)
                        else:
                            continue
                        for name, value in measured.items():
                            figures[TITLES[mode], name][client].append(value)
        finally:
            broker.kill()
    console = Console(width=max(140, Console().width))
    load = f"{chosen.records:,} records of {RECORD_BYTES} bytes in {PARTITIONS} partitions on {chosen.broker}"
    console.print(f"{load}; medians of {chosen.rounds}; {machine()}")
    table = Table("step", "figure", *chosen.clients, box=box.MARKDOWN)
    for (title, name), row in figures.items():
        shown = (f"{statistics.median(row[each]):,.4g}" if row[each] else "" for each in chosen.clients)
        table.add_row(title, name, *shown)
    console.print(table)


if __name__ == "__main__":
    main()
