"""How long a trace takes."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import Any

from sharecore import _core
from sharecore.errors import KafkaError
from sharecore.trace import operation as ops
from sharecore.trace.engines import Engine, Partition, Write
from sharecore.trace.operation import TraceError, state_batches

Report = dict[str, Any]


@dataclass(slots=True)
class _Tally:
    acquired: int = 0
    acknowledged: int = 0
    refused: int = 0


def bench_rust(file: str, runs: int, warmup: int) -> Report:
    """Replay inside Rust from prebuilt input: no Python in the timed part.

    Raises:
        OSError: the file cannot be read, or is no trace.
    """
    report = _core.bench_trace(file, runs, warmup)
    rounded = {
        name: round(value, 3) if name == "ms_median" else round(value) for name, value in report.items()
    }
    return {"file": Path(file).name, "engine": "rust", "through": "rust", **rounded}


def bench_python(engine: Engine, file: str, runs: int, warmup: int) -> Report:
    """Replay through Python calls, conversions included; the operations are parsed before.

    As the oracle's bench does, each acquire first asks for the next fetch offset, every write is committed at
    once, and an operation is one line of the trace other than init.

    Raises:
        TraceError: the trace has writes, complete or reload operations, or is malformed.
    """
    operations = [ops.parse(line) for line in _lines(file)]
    for operation in operations:
        if not isinstance(operation, ops.Init | ops.Leasing):
            raise TraceError(f"a timed trace takes no {type(operation).__name__} operations")
    if not operations:
        raise TraceError("an empty trace")
    tallies: list[_Tally] = []
    times = _timed(lambda: tallies.append(_replay(engine, iter(operations))), runs, warmup)
    count = sum(not isinstance(operation, ops.Init) for operation in operations)
    tally = tallies[-1]
    return {
        "file": Path(file).name,
        "engine": engine.name,
        "through": "python",
        "ops": count,
        "records_acquired": tally.acquired,
        "records_acked": tally.acknowledged,
        "ack_errors": tally.refused,
        **_rates(times, count, tally.acquired + tally.acknowledged),
    }


def bench_combine(engine: Engine, file: str, runs: int, warmup: int) -> Report:
    """Combine every case of a file; operations are cases, records are input batches."""
    cases = [
        (state_batches(line["existing"]), state_batches(line["new"]), int(line.get("start_offset", -1)))
        for line in _lines(file)
    ]

    def run() -> None:
        for existing, new, start_offset in cases:
            engine.combine(existing, new, start_offset)

    batches = sum(len(existing) + len(new) for existing, new, _ in cases)
    return {
        "file": Path(file).name,
        "engine": engine.name,
        "through": "python",
        "ops": len(cases),
        **_rates(_timed(run, runs, warmup), len(cases), batches),
    }


def _replay(engine: Engine, operations: Iterator[ops.Operation]) -> _Tally:
    tally = _Tally()
    now_ms = 0
    partition = _make(engine, next(operations))
    for operation in operations:
        if isinstance(operation, ops.Acquire):
            next_fetch_offset = partition.next_fetch_offset
            fetch_offset = operation.fetch_offset
            for first, last, _ in partition.acquire(
                now_ms,
                operation.member,
                operation.batches,
                fetch_offset=next_fetch_offset if fetch_offset is None else fetch_offset,
                max_fetch_records=operation.max_fetch_records,
                batch_size=operation.batch_size,
                record_limit=operation.record_limit,
            ):
                tally.acquired += last - first + 1
        elif isinstance(operation, ops.Acknowledge):
            try:
                _commit(partition, partition.acknowledge(now_ms, operation.member, operation.batches), now_ms)
            except KafkaError:
                tally.refused += 1
            else:
                tally.acknowledged += sum(last - first + 1 for first, last, _ in operation.batches)
        elif isinstance(operation, ops.Release):
            _commit(partition, partition.release(now_ms, operation.member), now_ms)
        elif isinstance(operation, ops.Advance):
            now_ms += operation.ms
            _commit(partition, partition.advance(now_ms), now_ms)
        elif isinstance(operation, ops.MoveLogStart):
            _commit(partition, partition.move_log_start(now_ms, operation.offset), now_ms)
        elif isinstance(operation, ops.Init):
            partition = _make(engine, operation)
    return tally


def _make(engine: Engine, init: ops.Operation) -> Partition:
    if not isinstance(init, ops.Init):
        raise TraceError("a trace begins with init")
    return engine.partition(
        init.start_offset,
        init.state_batches,
        max_delivery_count=init.max_delivery_count,
        max_inflight=init.max_inflight,
        lock_ms=init.lock_ms,
        renew_enabled=init.renew_enabled,
    )


def _commit(partition: Partition, write: Write | None, now_ms: int) -> None:
    if write is not None:
        partition.commit(write.id, now_ms)


def _lines(file: str) -> list[Mapping[str, Any]]:
    with open(file, encoding="utf-8") as lines:
        try:
            return [json.loads(line) for line in lines if line.strip()]
        except ValueError as error:
            raise TraceError(f"not JSON: {error}") from error


def _timed(run: Callable[[], None], runs: int, warmup: int) -> list[tuple[float, float]]:
    """(wall, CPU) milliseconds of each run."""
    times = []
    for number in range(-warmup, runs):
        gc.collect()
        wall, cpu = perf_counter_ns(), thread_time_ns()
        run()
        if number >= 0:
            times.append(((perf_counter_ns() - wall) / 1e6, (thread_time_ns() - cpu) / 1e6))
    return times


def _rates(times: list[tuple[float, float]], operations: int, records: int) -> Report:
    wall, cpu = (median(column) for column in zip(*times, strict=True))
    return {
        "runs": len(times),
        "ms_median": round(wall, 3),
        "ms_min": round(min(time for time, _ in times), 3),
        "cpu_ms_median": round(cpu, 3),
        "ops_per_s": round(operations * 1000 / wall),
        "records_per_s": round(records * 1000 / wall),
        "cpu_ops_per_s": round(operations * 1000 / max(cpu, 1e-3)),
    }
