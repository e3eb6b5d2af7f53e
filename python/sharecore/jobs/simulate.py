"""Simulations in executors: `applyInArrow` on each share partition at each point of the parameters."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sharecore.errors import ConfigError
from sharecore.jobs.load import NUMBERS, Load, Outcome
from sharecore.jobs.replay import LIMITS, replay
from sharecore.jobs.schema import arrow_schema, structs
from sharecore.jobs.simulation import simulate
from sharecore.trace.operation import TraceError

RUNS_MAX = 10_000
TASKS_MAX = 200
_LOAD = {each.name: each.type for each in fields(Load)}
_KINDS = {"int": "bigint", "float": "double", "str": "string", "bool": "boolean"}
_SAMPLE = "at_s double, arrived bigint, accepted bigint, leased bigint, backlog bigint"
_WHOLE = {each.name for each in fields(Outcome) if each.type == "int"}
_RESULT = ", ".join(f"{name} {'bigint' if name in _WHOLE else 'double'}" for name in NUMBERS)
_LOAD_COLUMNS = (
    "point int, partition int, "
    + ", ".join(f"{name} {_KINDS[str(kind)]}" for name, kind in _LOAD.items())
    + f", {_RESULT}"
)
_TRACE_COLUMNS = f"point int, trace string, {', '.join(f'{name} int' for name in LIMITS)}, {_RESULT}"
_SAMPLES = f", samples array<struct<{_SAMPLE}>>"
LOAD_SCHEMA, TRACE_SCHEMA = _LOAD_COLUMNS + _SAMPLES, _TRACE_COLUMNS + _SAMPLES


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated share partition at one point of the parameters."""

    point: int
    partition: int
    load: Load


def plan(base: Load, axes: Mapping[str, Sequence[Any]], partitions: int = 1) -> list[Run]:
    """Return a run for each combination of the axes and each share partition, with seeds of their own.

    Raises:
        ConfigError: an invalid value, or more than RUNS_MAX runs.
    """
    points = list(itertools.product(*axes.values()))
    if len(points) * partitions > RUNS_MAX:
        raise ConfigError(
            f"{len(points):,} points times {partitions:,} share partitions are more than {RUNS_MAX:,} runs"
        )
    return [
        Run(
            number,
            partition,
            replace(base, **dict(zip(axes, point, strict=True)), seed=base.seed + partition),
        )
        for number, point in enumerate(points)
        for partition in range(partitions)
    ]


def simulate_runs(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Return a row a run: point, partition, the load's fields, the outcome's, and samples over time."""
    rows = [(run.point, run.partition, json.dumps(asdict(run.load))) for run in runs]
    frame = spark.createDataFrame(rows, "point int, partition int, load string")
    return (
        _spread(frame, len(rows), "point", "partition")
        .groupBy("point", "partition")
        .applyInArrow(_simulate, LOAD_SCHEMA)
    )


def replay_traces(spark: SparkSession, path: str, limits: Sequence[Mapping[str, int]]) -> DataFrame:
    """Return a row a trace and point: the file's name, the limits, the outcome's fields, and samples over
    time.

    Args:
        path: a file, a directory or a pattern, on any file system that Spark reads.
        limits: each point's, by the names in `replay.LIMITS`.

    Raises:
        ConfigError: more than RUNS_MAX points.
    """
    if len(limits) > RUNS_MAX:
        raise ConfigError(f"{len(limits):,} points are more than {RUNS_MAX:,}")
    traces = spark.read.text(path, wholetext=True).select(
        F.col("value").alias("content"), F.element_at(F.split(F.input_file_name(), "/"), -1).alias("trace")
    )
    points = spark.createDataFrame(
        [(number, json.dumps(dict(each))) for number, each in enumerate(limits)], "point int, limits string"
    )
    frame = traces.crossJoin(F.broadcast(points))
    return (
        _spread(frame, TASKS_MAX, "trace", "point")
        .groupBy("trace", "point")
        .applyInArrow(_replay, TRACE_SCHEMA)
    )


def _spread(frame: DataFrame, groups: int, *keys: str) -> DataFrame:
    # set explicitly, so that neither the session's default nor coalescing puts many simulations into one task
    return frame.repartition(min(groups, TASKS_MAX), *keys)


def _simulate(group: pa.Table) -> pa.Table:
    (row,) = group.to_pylist()
    load = json.loads(row["load"])
    return _table(
        {"point": row["point"], "partition": row["partition"], **load}, simulate(Load(**load)), _LOAD_ARROW
    )


def _replay(group: pa.Table) -> pa.Table:
    (row,) = group.to_pylist()
    limits = json.loads(row["limits"])
    try:
        outcome = replay(row["content"].splitlines(), limits)
    except TraceError as error:
        raise TraceError(f"{row['trace']}: {error}") from None
    keys = {"point": row["point"], "trace": row["trace"], **{name: limits.get(name) for name in LIMITS}}
    return _table(keys, outcome, _TRACE_ARROW)


def _table(keys: Mapping[str, object], outcome: Outcome, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{**keys, **asdict(outcome)}], schema=schema)


_LOAD_ARROW, _TRACE_ARROW = (
    arrow_schema(columns, samples=structs(_SAMPLE)) for columns in (_LOAD_COLUMNS, _TRACE_COLUMNS)
)
