"""Many slow workers on few partitions, beside Apache Kafka: `make bench-workers`.

Members of one share group, in Java's own client, take four partitions and work on a record for a while each.
With a backlog the figure is how busy they are; at 80 % of what they could do, how long a record takes from
its append to the confirmed acknowledgement.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.machine import machine
from rich import box
from rich.console import Console
from rich.table import Table
from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, ROOT, Broker
from tests.harness.clients import configure_group, create_topic, produce

PARTITIONS = 4
SUBJECTS = {
    "sharecore": ("sharecore", None),
    "apache-4.3.1": ("apache", KAFKA_LIBS),
    "apache-4.4.0": ("apache", ROOT / "build/jars/kafka-4.4.0"),
}
POLLED_MS = 100
"""Records a poll are worth so much work, so that an acknowledgement is not late by more."""
ROOM = {"group.share.max.size": "1000"}
"""Kafka's default is 200 members."""
PACED = 0.8
"""Of what the workers could do, where latency is measured."""
RATE_MAX = 40_000
"""No more records a second are produced: the machine's limit and not the workers'."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-workers", description=__doc__)
    parser.add_argument("--workers", nargs="+", type=int, default=[100, 300], help="members of the group")
    parser.add_argument(
        "--work", nargs="+", type=float, default=[1, 10, 100], metavar="MS", help="work a record"
    )
    parser.add_argument("--seconds", type=int, default=10, help="length of a measurement")
    parser.add_argument("--warm", type=int, default=15, help="seconds before it, for all members to join")
    parser.add_argument("--rounds", type=int, default=3, help="the table shows medians")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    return parser.parse_args()


def measure(
    broker: Broker, name: str, workers: int, work_ms: float, rate: int, chosen: argparse.Namespace
) -> dict[str, float]:
    """Run the workers on a topic of their own; with rate 0 on a backlog."""
    create_topic(broker.bootstrap, name, PARTITIONS)
    configure_group(broker.bootstrap, name, share_auto_offset_reset="earliest")
    if not rate:
        most = min(workers * 1000 / work_ms, RATE_MAX) * (chosen.warm + chosen.seconds)
        for partition in range(PARTITIONS):
            values = (struct.pack(">q", 0) for _ in range(int(most) // PARTITIONS + 1))
            produce(broker.bootstrap, name, values, partition)
    arguments = [
        broker.bootstrap,
        name,
        name,
        PARTITIONS,
        workers,
        int(work_ms * 1000),
        max(1, int(POLLED_MS / work_ms)),
        chosen.warm,
        chosen.seconds,
        rate,
    ]
    heap = (
        "-Xmx3g",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
    )
    program = java.program(ROOT / "benches/workers/Workers.java", libs=java.CLIENT_LIBS, options=heap)
    cpu_s: list[float] = []
    command = [*program, *map(str, arguments)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                figures: dict[str, float] = json.loads(line)
                figures["broker CPU"] = (cpu_s[1] - cpu_s[0]) / chosen.seconds
                return figures
            cpu_s.append(broker.cpu_seconds())
        status = process.wait()
        errors.seek(0)
        raise RuntimeError(f"the workers ended with {status}:\n{errors.read()[-2000:]}")


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(140, Console().width))
    found: dict[tuple[int, float, str], list[dict[str, float]]] = defaultdict(list)
    shapes = [(workers, work_ms) for workers in chosen.workers for work_ms in chosen.work]
    steps = len(shapes) * len(chosen.subjects) * chosen.rounds
    done = 0
    for number in range(chosen.rounds):
        for subject in chosen.subjects:
            kind, libs = SUBJECTS[subject]
            with tempfile.TemporaryDirectory() as home:
                broker = Broker(Path(home), kind, ROOM, libs=libs or KAFKA_LIBS)
                broker.start()
                try:
                    for workers, work_ms in shapes:
                        ideal = workers * 1000 / work_ms
                        name = f"{workers}-{work_ms:g}-{number}"
                        busy = measure(broker, f"backlog-{name}", workers, work_ms, 0, chosen)
                        rate = int(min(ideal, busy["records/s"]) * PACED)
                        paced = measure(broker, f"paced-{name}", workers, work_ms, rate, chosen)
                        figures = {
                            "records/s": busy["records/s"],
                            "of the ideal": 100 * busy["busy"],
                            "CPU s/s": busy["broker CPU"],
                            "CPU us a record": 1e6 * busy["broker CPU"] / max(busy["records/s"], 1),
                            "again": busy["again"] + paced["again"],
                            "p50 ms": paced["p50 ms"],
                            "p99 ms": paced["p99 ms"],
                        }
                        found[workers, work_ms, subject].append(figures)
                        done += 1
                        shown = ", ".join(f"{key} {value:,.4g}" for key, value in figures.items())
                        console.print(f"{done}/{steps} {subject}, {workers} workers, {work_ms:g} ms: {shown}")
                finally:
                    broker.kill()
    table = Table("workers", "work ms", "", *next(iter(found.values()))[0], box=box.MARKDOWN)
    for (workers, work_ms, subject), rounds in sorted(found.items()):
        medians = (f"{statistics.median(each[name] for each in rounds):,.4g}" for name in rounds[0])
        table.add_row(str(workers), f"{work_ms:g}", subject, *medians)
    console.print(f"{PARTITIONS} partitions; medians of {chosen.rounds}; {machine()}")
    console.print(table)


if __name__ == "__main__":
    main()
