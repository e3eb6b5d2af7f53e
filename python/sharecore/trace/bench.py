"""Benchmark of a trace."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from struct import Struct
from time import perf_counter_ns, thread_time_ns
from typing import Final, Literal, TypeAlias

from sharecore import _core
from sharecore.errors import KafkaError
from sharecore.trace import operation as ops
from sharecore.trace.engines import Engine, Partition, StateBatch
from sharecore.trace.operation import TraceError, integer, state_batches

Report = dict[str, object]

_ACQUIRE: Final = 0
_ACKNOWLEDGE: Final = 1
_RELEASE: Final = 2
_ADVANCE: Final = 3
_MOVE_LOG_START: Final = 4
_INIT: Final = 5
_Call: TypeAlias = (
    tuple[Literal[0], str, list[tuple[int, int]], int | None, int, int, bool]
    | tuple[Literal[1], str, list[tuple[int, int, bytes]], int]
    | tuple[Literal[2], str]
    | tuple[Literal[3, 4], int]
    | tuple[Literal[5], ops.Init]
)
"""A prepared call: the timed part has no lookups, and a plain tuple unpacks fastest.

It contains: its kind; the member, milliseconds, log start or initial partition; the batches; for an
acquisition the fetch offset (None: the next) and the limits, for an acknowledgement the number of offsets.
"""
# as in ShareSnapshotValue and ShareUpdateValue: first and last offset, state, count, no tagged fields
_STATE_BATCH = Struct(">qqbhb")


def bench_rust(file: str, runs: int, warmup: int) -> Report:
    """Replay inside Rust from prebuilt input, without Python in the timed part.

    Raises:
        OSError: the file cannot be read, or is not a trace.
    """
    report = _core.bench_trace(file, runs, warmup)
    rounded = {
        name: round(value, 3) if name == "ms_median" else round(value) for name, value in report.items()
    }
    return {"file": Path(file).name, "engine": "rust", "through": "rust", **rounded}


def bench_python(engine: Engine, file: str, runs: int, warmup: int) -> Report:
    """Replay through Python calls, including conversions; operations are parsed beforehand.

    As the oracle's bench does, each acquire first asks for the next fetch offset, every write is committed at
    once, and an operation is one line of the trace other than init.

    Raises:
        TraceError: the trace has writes, complete or reload operations, or is malformed.
    """
    operations = [ops.parse(line) for line in _lines(file)]
    if not operations or not isinstance(init := operations[0], ops.Init):
        raise TraceError("a trace begins with init")
    calls = [_call(operation) for operation in operations[1:]]
    tally = _replay(engine, init, calls, counting=True)
    times = _timed(lambda: _replay(engine, init, calls), runs, warmup)
    count = sum(call[0] != _INIT for call in calls)
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
    """Combine every case of a file; operations are cases, records are input batches.

    For the Rust engine also packed, as a coordinator holds state batches: `packed_cpu_ops_per_s`.
    """
    cases = [
        (state_batches(line["existing"]), state_batches(line["new"]), integer(line.get("start_offset", -1)))
        for line in _lines(file)
    ]

    def run() -> None:
        for existing, new, start_offset in cases:
            engine.combine(existing, new, start_offset)

    batches = sum(len(existing) + len(new) for existing, new, _ in cases)
    report = {
        "file": Path(file).name,
        "engine": engine.name,
        "through": "python",
        "ops": len(cases),
        **_rates(_timed(run, runs, warmup), len(cases), batches),
    }
    if engine.name != "rust":
        return report
    packed = [([_packed(existing), _packed(new)], start_offset) for existing, new, start_offset in cases]

    def run_packed() -> None:
        for parts, start_offset in packed:
            _core.combine_state_batches(parts, start_offset)

    rates = _rates(_timed(run_packed, runs, warmup), len(cases), batches)
    return {**report, "packed_cpu_ops_per_s": rates["cpu_ops_per_s"]}


def _packed(batches: list[StateBatch]) -> bytes:
    return b"".join(_STATE_BATCH.pack(*batch, 0) for batch in batches)


def _call(operation: ops.Operation) -> _Call:
    match operation:
        case ops.Acquire(member, batches, fetch_offset, most, batch_size, record_limit):
            return _ACQUIRE, member, batches, fetch_offset, most, batch_size, record_limit
        case ops.Acknowledge(member, batches):
            return _ACKNOWLEDGE, member, batches, sum(last - first + 1 for first, last, _ in batches)
        case ops.Release(member):
            return _RELEASE, member
        case ops.Advance(ms):
            return _ADVANCE, ms
        case ops.MoveLogStart(offset):
            return _MOVE_LOG_START, offset
        case ops.Init():
            return _INIT, operation
    raise TraceError(f"a timed trace takes no {type(operation).__name__} operations")


@dataclass(slots=True)
class _Tally:
    acquired: int = 0
    acknowledged: int = 0
    refused: int = 0


def _replay(engine: Engine, init: ops.Init, calls: list[_Call], *, counting: bool = False) -> _Tally:
    """Make the calls and commit each write; count acquired records only if `counting`."""
    tally = _Tally()
    now_ms = 0
    partition = _make(engine, init)
    for call in calls:
        write = None
        if call[0] == _ACQUIRE:
            _, member, offsets, fetch_offset, most, batch_size, record_limit = call
            next_fetch_offset = partition.next_fetch_offset
            acquired = partition.acquire(
                now_ms,
                member,
                offsets,
                next_fetch_offset if fetch_offset is None else fetch_offset,
                most,
                batch_size,
                record_limit,
            )
            if counting:
                tally.acquired += sum(last - first + 1 for first, last, _ in acquired)
        elif call[0] == _ACKNOWLEDGE:
            _, member, acknowledged, count = call
            try:
                write = partition.acknowledge(now_ms, member, acknowledged)
                tally.acknowledged += count
            except KafkaError:
                tally.refused += 1
        elif call[0] == _RELEASE:
            write = partition.release(now_ms, call[1])
        elif call[0] == _ADVANCE:
            now_ms += call[1]
            write = partition.advance(now_ms)
        elif call[0] == _MOVE_LOG_START:
            partition.move_log_start(now_ms, call[1])
        else:
            partition = _make(engine, call[1])
        if write is not None:
            partition.commit(write.id, now_ms)
    return tally


def _make(engine: Engine, init: ops.Init) -> Partition:
    return engine.partition(
        init.start_offset,
        init.state_batches,
        max_delivery_count=init.max_delivery_count,
        max_inflight=init.max_inflight,
        lock_ms=init.lock_ms,
        renew_enabled=init.renew_enabled,
        dead_letters=init.dead_letters,
    )


def _lines(file: str) -> list[ops.Line]:
    with open(file, encoding="utf-8") as lines:
        try:
            return [json.loads(line) for line in lines if line.strip()]
        except ValueError as error:
            raise TraceError(f"not JSON: {error}") from error


def _timed(run: Callable[[], object], runs: int, warmup: int) -> list[tuple[float, float]]:
    """Return wall and CPU milliseconds of each run."""
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
