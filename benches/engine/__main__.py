"""The engine in Rust, through Python, and Apache Kafka's class in the JVM, in one run: `make bench`."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benches.engine import measure
from benches.engine.report import Section, table, write
from benches.engine.traces import GENERATED, RECORDED, ROOT, unpack
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

DOCUMENT = ROOT / "docs/benchmarks.md"
WINDOWS = (2_000, 10_000, 100_000, 1_000_000, 10_000_000)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="timed runs, of which the median counts")
    parser.add_argument("--warmup", type=int, default=60, help="untimed runs before (default: %(default)s)")
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="turns of each, of which the best counts (default: %(default)s)",
    )
    parser.add_argument("--profiles", nargs="+", default=[*RECORDED, *GENERATED], metavar="NAME")
    parser.add_argument("--windows", nargs="+", type=int, default=list(WINDOWS), metavar="RECORDS")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    console = Console(width=max(140, Console().width))
    columns = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with tempfile.TemporaryDirectory() as scratch, Progress(*columns, console=console) as progress:
        a_round = 4 * len(chosen.profiles) + len(chosen.windows)
        steps = len(chosen.profiles) + chosen.rounds * a_round + 2
        task = progress.add_task("starting", total=steps)

        def step(text: str, work: Callable[[], Any]) -> Any:
            progress.update(task, description=text)
            result = work()
            progress.advance(task)
            return result

        sections = [
            _speed(chosen, Path(scratch), step),
            _windows(chosen, step),
            _memory(Path(scratch), step),
        ]
    machine = f"{os.cpu_count()} CPUs, {platform.platform()}, Python {platform.python_version()}"
    for section in sections:
        console.print(f"\n{section.title}\n")
        console.print(section.table)
    console.print(f"\n{machine}")
    if chosen.write:
        write(DOCUMENT, sections, machine)


Step = Callable[[str, Callable[[], Any]], Any]


def _speed(chosen: argparse.Namespace, scratch: Path, step: Step) -> Section:
    traces = {name: step(f"{name}: unpack", partial(unpack, name, scratch)) for name in chosen.profiles}
    timed = chosen.runs, chosen.warmup
    best: dict[str, list[float]] = {}
    for turn in range(1, chosen.rounds + 1):
        for name, trace in traces.items():
            title = f"round {turn}, {name}"
            rust = step(f"{title}: Rust", partial(measure.through_rust, trace, *timed))
            python = step(f"{title}: through Python", partial(measure.through_python, trace, *timed))
            apache = step(f"{title}: Apache", partial(measure.apache, trace, *timed))
            serial = step(
                f"{title}: Apache, serial collector",
                partial(measure.apache, trace, *timed, measure.SERIAL_COLLECTOR),
            )
            for label, calls in zip((name, f"{name}, packed"), python, strict=False):
                now = [rust, calls, apache, serial]
                best[label] = [max(pair) for pair in zip(now, best.get(label, now), strict=True)]
    heads = ["profile", "Rust", "through Python", "Apache", "Apache, serial collector"]
    rows = [
        [
            label,
            *(f"{figure:,.0f}" for figure in figures),
            f"{figures[0] / figures[2]:.1f}",
            f"{figures[1] / figures[2]:.1f}",
        ]
        for label, figures in best.items()
    ]
    return Section(
        "Operations a second of CPU time",
        table([*heads, "Rust / Apache", "Python / Apache"], rows),
    )


def _windows(chosen: argparse.Namespace, step: Step) -> Section:
    names = ("turn_over_ns", "acknowledge_one_ns", "expire_ns", "broken_acknowledge_one_ns")
    best: dict[int, list[int]] = {}
    for turn in range(1, chosen.rounds + 1):
        for window in chosen.windows:
            title = f"round {turn}, window of {window:,}"
            (report,) = step(title, partial(measure.cargo_bench, "window", [str(window)]))
            now = [report[name] for name in names]
            best[window] = [min(pair) for pair in zip(now, best.get(window, now), strict=True)]
    heads = ["leased records", "turn over", "acknowledge one", "expire", "one of single records"]
    rows = [[f"{window:,}", *(f"{figure:,}" for figure in figures)] for window, figures in best.items()]
    return Section("Nanoseconds an operation, by the window in flight", table(heads, rows))


def _memory(scratch: Path, step: Step) -> Section:
    (ours,) = step("memory", partial(measure.cargo_bench, "memory"))
    theirs = step("memory of Apache", partial(measure.apache_heap, unpack("steady", scratch)))
    rows = [
        [
            "a leased batch of 500",
            f"{ours['bytes_a_leased_batch']:.0f}",
            f"{theirs['heap_bytes_per_inflight_batch']:.0f}",
        ],
        [
            "a record, each its own run",
            f"{ours['bytes_a_run']:.0f}",
            f"{theirs['heap_bytes_per_inflight_record_offset_state']:.0f}",
        ],
    ]
    return Section("Bytes in flight", table(["", "Rust", "Apache"], rows))


if __name__ == "__main__":
    main()
