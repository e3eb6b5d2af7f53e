"""One figure each: CPU time, so that what else the machine does is not counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benches.apache import JVM_OPTIONS
from benches.engine.traces import ROOT

_ORACLE = ROOT / "tests/oracle/oracle.sh"
SERIAL_COLLECTOR = "-Xms2g -Xmx2g -XX:+UseSerialGC"
_HEAP = "-Xms4g -Xmx4g -XX:+UseSerialGC"

Report = dict[str, Any]


_RUNS_OF_RUST = 10
"""A CPU gets up to speed in some tenths of a second: as a run takes a tenth, there are ten times as many."""


def through_rust(trace: Path, runs: int, warmup: int) -> float:
    """Operations a CPU second, the engine called from Rust."""
    return float(_replay("rust", trace, _RUNS_OF_RUST * runs, _RUNS_OF_RUST * warmup)["ops_per_s"])


def through_python(trace: Path, runs: int, warmup: int) -> list[float]:
    """Return the same, called from Python; of the combiner also with packed lists."""
    if trace.stem != "combine":
        return [float(_replay("python", trace, runs, warmup)["cpu_ops_per_s"])]
    report = _replay("python", trace, runs, warmup, "--combine")
    return [float(report[name]) for name in ("cpu_ops_per_s", "packed_cpu_ops_per_s")]


def _replay(path: str, trace: Path, runs: int, warmup: int, *options: str) -> Report:
    arguments = ["--bench", "--runs", str(runs), "--warmup", str(warmup), "--through", path, *options]
    return _json([sys.executable, "-m", "sharecore.trace", *arguments, str(trace)])[0]


def apache(trace: Path, runs: int, warmup: int, java_options: str = JVM_OPTIONS) -> float:
    """Operations a CPU second of Apache Kafka's own class, after warm-up, in a JVM as Kafka starts it."""
    mode = "combine" if trace.stem == "combine" else "bench"
    options = ["--runs", str(runs), "--warmup", str(warmup)]
    return float(_json([str(_ORACLE), mode, str(trace), *options], java_options)[0]["cpu_ops_per_s_median"])


def apache_heap(trace: Path) -> Report:
    """Bytes of heap that Apache's class holds in flight."""
    return _json([str(_ORACLE), "bench", str(trace), "--runs", "1", "--warmup", "0", "--heap"], _HEAP)[0]


def cargo_bench(name: str, arguments: Sequence[str] = ()) -> list[Report]:
    """Return the lines of a bench of the engine's crate."""
    command = ["cargo", "bench", "-q", "--locked", "-p", "sharecore-engine", "--bench", name]
    return _json([*command, "--", *arguments])


def _json(command: Sequence[str], java_options: str = "") -> list[Report]:
    environment = {**os.environ, "JAVA_OPTS": java_options}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    # the combiner's results go to standard output, its timing to the other
    found = list(_reports(done.stderr)) or list(_reports(done.stdout))
    if done.returncode or not found:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return found


def _reports(text: str) -> Iterator[Report]:
    return (json.loads(line) for line in text.splitlines() if line.startswith("{"))
