"""Order by key, back-off, delivery times and weights beside other queues: `make bench-queues`.

Subjects take turns in each row. A figure counts if the ledger finds nothing wrong with its run: each record
delivered, no two of a key at a time nor out of order, nothing early.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from benches.apache import as_kafka_starts_it
from benches.machine import Stolen, machine, sync_ms
from benches.queues.restart import WAITING, restart
from benches.queues.rivals import RIVALS
from benches.queues.sampler import Sampler
from benches.queues.shapes import SHAPES, Case, Result
from benches.queues.subjects import KafkaSubject, Subject
from benches.queues.trail import Trail
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.harness.broker import Broker

JAVA, CONFLUENT = "sharecore, Java", "sharecore, confluent-kafka"
JAVA_OS, PARALLEL = "sharecore os, Java", "Parallel Consumer on Apache Kafka 4.3.1"
OURS = (JAVA, CONFLUENT, JAVA_OS)
SUBJECTS = (*OURS, PARALLEL, *RIVALS)
RESTART = "restart"
LEAD_S = 15
"""What consumers take to join before a load begins that has times."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-queues", description=__doc__)
    add = parser.add_argument
    add("--records", type=int, default=1_000_000, help="of a load (default: %(default)s)")
    add("--times", type=int, nargs="+", default=[100_000], help="records with delivery times")
    add("--rate", type=int, default=1_000, help="records a second of a paced load (default: %(default)s)")
    add("--pace-seconds", type=int, default=15, help="how long one lasts (default: %(default)s)")
    add("--idle-seconds", type=int, default=30, help="while nothing but waiting is (default: %(default)s)")
    add("--seconds", type=int, default=60, help="that a run may take (default: %(default)s)")
    add("--members", type=int, default=4, help="consumers of a run (default: %(default)s)")
    add("--workers", type=int, nargs="+", default=[8, 64, 256], help="consumers of the shape zipf")
    add("--rounds", type=int, default=1, help="the table shows medians")
    add("--only", nargs="+", choices=[*SHAPES, RESTART], default=[*SHAPES, RESTART])
    add("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    return parser.parse_args()


class Bench:
    """Servers that run, and what is in their topics.

    Args:
        scratch: an empty directory.
    """

    def __init__(self, chosen: argparse.Namespace, scratch: Path, console: Console) -> None:
        self._scratch = scratch
        self._number = 0
        self._filler = ThreadPoolExecutor(1)
        self._filled: dict[tuple[int, str], array[int]] = {}
        self.subjects = {name: subject for name, subject in self._made(console) if name in chosen.subjects}

    def _made(self, console: Console) -> Iterator[tuple[str, Subject]]:
        ours = Broker(self._scratch / "fsync", "sharecore")
        ours_os = Broker(self._scratch / "os", "sharecore", {}, ("--durability", "os"))
        yield JAVA, KafkaSubject(ours, "java", "fsync")
        yield CONFLUENT, KafkaSubject(ours, "confluent", "fsync")
        yield JAVA_OS, KafkaSubject(ours_os, "java", "page cache")
        apache = Broker(self._scratch / "apache", "apache")
        yield PARALLEL, KafkaSubject(apache, "parallel", "page cache, offsets every 5 s")
        for name, kind in RIVALS.items():
            missing = kind.missing()
            if missing is None:
                yield name, kind(self._scratch / name)
            else:
                console.print(f"{missing} is not installed: no figures of {name}")

    def measure(self, name: str, case: Case) -> Result:
        """Run a case once."""
        self._number += 1
        subject, load = self.subjects[name], case.run.load
        subject.start()
        topic, trail = load.name, self._scratch / f"trail-{self._number}"
        group = f"group-{self._number}"
        began_ns = time.time_ns()
        filling: Future[array[int]] | None = None
        sent = array("q")
        key = subject.pid, load.name
        if load.rate or load.due_s or not subject.keeps:
            topic += f"-{self._number}"
        if key not in self._filled or topic != load.name:
            subject.create(load, topic)
        if load.rate or load.due_s:
            lead = LEAD_S + case.run.workers // 4 + (0 if load.rate else load.count // 40_000)
            began_ns += lead * 1_000_000_000
            filling = self._filler.submit(subject.fill, load, topic, began_ns)
        elif topic != load.name:
            sent = subject.fill(load, topic, began_ns)
        else:
            if key not in self._filled:
                self._filled[key] = subject.fill(load, topic, began_ns)
            sent = self._filled[key]
        try:
            with Sampler(subject.pid) as sampler:
                subject.consume(case.run, topic, group, trail)
        finally:
            # where it failed, that is why nothing was consumed
            if filling is not None:
                sent = filling.result()
        result = Result(case.run, Trail(trail), sampler, sent, began_ns)
        trail.unlink()
        return result

    def kill(self) -> None:
        """End all servers."""
        for subject in self.subjects.values():
            subject.kill()


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(160, Console().width))
    columns = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    rows: list[tuple[str, str, dict[str, list[float] | str]]] = []
    stolen = Stolen()
    with (
        tempfile.TemporaryDirectory(prefix="bench-queues-") as directory,
        Progress(*columns, console=console) as progress,
    ):
        bench = Bench(chosen, Path(directory), console)
        shapes = [shape for shape in chosen.only if shape != RESTART]
        cases = [(shape, case) for shape in shapes for case in SHAPES[shape](chosen)]
        task = progress.add_task("", total=len(cases) * len(bench.subjects))
        try:
            for shape, case in cases:
                found: dict[str, dict[str, list[float] | str]] = defaultdict(dict)
                for name, subject in bench.subjects.items():
                    progress.update(task, description=f"{shape}, {case.title}: {name}")
                    if subject.able(case.run) and (name in OURS or not case.is_ours_alone):
                        measure(bench, name, case, chosen.rounds, found, console)
                    progress.advance(task)
                rows += [(f"{shape}: {case.title}", figure, by_name) for figure, by_name in found.items()]
        finally:
            bench.kill()
        if RESTART in chosen.only:
            progress.update(task, description=RESTART)
            for waiting in (0, WAITING):
                title = f"{RESTART}: killed while {waiting:,} records wait"
                homes = [Path(directory) / f"{RESTART}-{waiting}-{number}" for number in range(chosen.rounds)]
                lives = [restart(home, waiting) for home in homes]
                rows += [(title, figure, {JAVA: [each[figure] for each in lives]}) for figure in lives[0]]
        median, late = sync_ms(Path(directory))
    for name, subject in bench.subjects.items():
        console.print(f"{name}: a confirmed record is durable with {subject.durability}")
    load = f"records of 100 bytes; {chosen.records:,} at once; {chosen.rounds} round(s)"
    console.print(f"{load}; {machine()}")
    disk = f"a small write is synced in {median:.2f} ms, p99 {late:.2f} ms, on the disk alone"
    console.print(f"{disk}; {stolen.percent:.1f} % of the CPUs' time was stolen")
    console.print(table(rows, list(bench.subjects)))


def measure(
    bench: Bench,
    name: str,
    case: Case,
    rounds: int,
    found: dict[str, dict[str, list[float] | str]],
    console: Console,
) -> None:
    """Add a subject's figures, or what is wrong with its run; a rival that fails does not end the bench."""
    for _ in range(rounds):
        try:
            result = bench.measure(name, case)
        except (RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as error:
            if name in OURS:
                raise
            console.print(f"{case.title}: {name} failed: {error}")
            found["the run"][name] = f"failed: {reason(error)}"
            return
        errors = case.errors(result)
        if errors:
            console.print(f"{case.title}: {name}: {errors}")
            found["the ledger"][name] = "refused"
            continue
        for figure, value in case.figures(result).items():
            values = found[figure].setdefault(name, [])
            assert isinstance(values, list)
            values.append(value)
        console.print(f"{case.title}: {name}: {case.figures(result)}")


def reason(error: Exception) -> str:
    """Return the last line of what an error says, as far as a cell has room for it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1][-80:]


def table(rows: list[tuple[str, str, dict[str, list[float] | str]]], names: list[str]) -> Table:
    """Return a row a figure; a dash where a subject has none."""
    shown = Table("", "figure", box=box.MARKDOWN)
    for name in names:
        shown.add_column(name, justify="right")
    last = ""
    for title, figure, by_name in rows:
        shown.add_row("" if title == last else title, figure, *(_cell(by_name.get(name)) for name in names))
        last = title
    return shown


def _cell(values: list[float] | str | None) -> str:
    if not isinstance(values, list):
        return values or "-"
    value = statistics.median(values)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
