"""`sharecore spark simulate` on a Spark session."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import Result
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.jobs.load import Load
from sharecore.jobs.simulation import simulate


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["spark", "simulate", *map(str, arguments)])


def test_a_sweep_is_what_the_function_says(spark: SparkSession, tmp_path: Path) -> None:
    ended = run(
        "--members", "1,4", "--lock-ms", "1000,30000", "--duration", 3, "--partitions", 2, "--out", tmp_path
    )
    assert ended.exit_code == 0, ended.output
    rows = spark.read.parquet(str(tmp_path / "runs")).collect()
    assert len(rows) == 8
    for row in rows:
        load = Load(members=row.members, lock_ms=row.lock_ms, duration_s=3, seed=1 + row.partition)
        expected = simulate(load)
        assert (row.seed, row.throughput, row.latency_p99_ms) == (
            load.seed,
            expected.throughput,
            expected.latency_p99_ms,
        )
        assert row.lock_timeouts == expected.lock_timeouts
        assert [each.backlog for each in row.samples] == [each.backlog for each in expected.samples]
    assert (tmp_path / "report.html").read_text().count("<svg") == 8

    again = run("--out", tmp_path)
    assert again.exit_code == 1
    assert "--overwrite replaces it" in again.stderr


def test_traces_under_other_limits(spark: SparkSession, tmp_path: Path) -> None:
    operations = [
        {"op": "init", "lock_ms": 1000},
        {"op": "acquire", "member": "a", "batches": [[0, 9]]},
        {"op": "advance", "ms": 2000},
        {"op": "ack", "member": "a", "batches": [{"first": 0, "last": 9, "types": [1]}]},
    ]
    traces = tmp_path / "traces"
    traces.mkdir()
    for name in ("one", "two"):
        (traces / name).write_text("\n".join(map(json.dumps, operations)))
    ended = run("--trace", traces, "--lock-ms", "1000,5000", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.output
    rows = spark.read.parquet(str(tmp_path / "out/runs")).orderBy("trace", "lock_ms").collect()
    assert [(row.trace, row.lock_ms, row.lock_timeouts, row.accepted) for row in rows] == [
        ("one", 1000, 10, 0),
        ("one", 5000, 0, 10),
        ("two", 1000, 10, 0),
        ("two", 5000, 0, 10),
    ]


def test_what_is_wrong_is_said_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text('{"op": "init"}\n{"op": "jump"}\n')
    for arguments, reason in (
        (["--members", "many"], "--members many: a number"),
        (["--members", "0"], "members=0: at least 1"),
        (["--handling", "soon"], "unknown handling-time distribution"),
        (["--trace", tmp_path / "none"], "PATH_NOT_FOUND"),
        (["--trace", tmp_path / "bad"], "bad: line 2: op is one of"),
        (["--trace", tmp_path / "bad", "--members", 3], "--members would have no effect"),
    ):
        ended = run(*arguments)
        assert ended.exit_code == 1
        assert reason in ended.stderr, ended.stderr
        assert ended.stderr.count("\n") == 1, ended.stderr
