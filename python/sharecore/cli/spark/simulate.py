"""`sharecore spark simulate`: a share partition under load, at many points of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from sharecore.cli.clients import CommandFailed, UsageFailed
from sharecore.cli.spark.common import (
    Master,
    Out,
    Overwrite,
    ReportFile,
    collect,
    failures,
    session,
    write_report,
)
from sharecore.cli.tables import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sharecore.jobs.load import Load

Text = Optional[str]  # noqa: UP045 - typer evaluates the annotation
_SHOWN = {
    "throughput": "RECORDS/S",
    "redelivery_rate": "REDELIVERED",
    "lock_timeouts": "TIMEOUTS",
    "archived": "ARCHIVED",
    "latency_p50_ms": "P50 MS",
    "latency_p99_ms": "P99 MS",
    "inflight_max": "IN FLIGHT",
}
_TRACE_OPTIONS = {
    "lock_ms": "lock_ms",
    "max_record_locks": "max_inflight",
    "delivery_limit": "max_delivery_count",
}


def simulate(
    records_per_s: Annotated[
        Text, typer.Option(metavar="N,...", help="Arrival rate.  [default: 1000]")
    ] = None,
    members: Annotated[Text, typer.Option(metavar="N,...", help="Members.  [default: 4]")] = None,
    handling: Annotated[
        Text,
        typer.Option(
            metavar="DISTRIBUTION,...",
            help="Handling time per record: fixed:MS, exponential:MS, uniform:MS:MS or "
            "lognormal:MEDIAN_MS:SIGMA.  [default: exponential:2]",
        ),
    ] = None,
    failure_rate: Annotated[
        Text, typer.Option(metavar="P,...", help="Fraction of deliveries that are released.  [default: 0]")
    ] = None,
    lock_ms: Annotated[
        Text, typer.Option(metavar="MS,...", help="share.record.lock.duration.ms.  [default: 30000]")
    ] = None,
    max_record_locks: Annotated[
        Text, typer.Option(metavar="N,...", help="share.partition.max.record.locks.  [default: 2000]")
    ] = None,
    delivery_limit: Annotated[
        Text, typer.Option(metavar="N,...", help="share.delivery.count.limit.  [default: 5]")
    ] = None,
    max_poll_records: Annotated[
        Text, typer.Option(metavar="N,...", help="Records per poll of a member.  [default: 500]")
    ] = None,
    record_batch: Annotated[
        Text, typer.Option(metavar="N,...", help="Records per produced batch.  [default: 1]")
    ] = None,
    write_ms: Annotated[
        Text, typer.Option(metavar="MS,...", help="Time until an acknowledgement is durable.  [default: 0]")
    ] = None,
    acquire_mode: Annotated[
        str, typer.Option(metavar="batch_optimized|record_limit", help="share.acquire.mode.")
    ] = "batch_optimized",
    arrivals: Annotated[str, typer.Option(metavar="poisson|constant")] = "poisson",
    renew: Annotated[
        bool, typer.Option("--renew", help="Members renew their locks at half their duration.")
    ] = False,
    duration: Annotated[float, typer.Option(metavar="SECONDS", help="How long records are produced.")] = 60.0,
    partitions: Annotated[
        int, typer.Option(min=1, help="Share partitions per point, each with its own seed.")
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Seed of the first share partition; runs with equal seeds are equal.")
    ] = 1,
    trace: Annotated[
        Text,
        typer.Option(
            metavar="FILE|DIR",
            help="Replay traces (python -m sharecore.trace --help) instead of a load; --lock-ms, "
            "--max-record-locks and --delivery-limit override the trace's values.",
        ),
    ] = None,
    out: Out = None,
    report: ReportFile = None,
    overwrite: Overwrite = False,
    master: Master = None,
) -> None:
    """Simulate a share partition under load, for capacity planning.

    \b
    sharecore spark simulate --members 2,4,8,16 --handling exponential:10 --out sizing
    sharecore spark simulate --trace traces/ --lock-ms 5000,30000 --out replayed

    Members acquire records, handle them one after the other and acknowledge them together. The share
    partition is the brokers' engine; time is simulated. Commas make a sweep: every combination of values is a
    point, and points run in parallel. Arrivals and handling times depend on the seed alone.

    --out writes DIR/runs, Parquet with a row per run: parameters, results and samples over time.
    """
    with failures():
        from sharecore.jobs.output import parquet_path, report_path

        swept = {
            "records_per_s": _values("--records-per-s", records_per_s, float),
            "members": _values("--members", members, int),
            "handling": _values("--handling", handling, str),
            "failure_rate": _values("--failure-rate", failure_rate, float),
            "lock_ms": _values("--lock-ms", lock_ms, int),
            "max_record_locks": _values("--max-record-locks", max_record_locks, int),
            "delivery_limit": _values("--delivery-limit", delivery_limit, int),
            "max_poll_records": _values("--max-poll-records", max_poll_records, int),
            "record_batch": _values("--record-batch", record_batch, int),
            "write_ms": _values("--write-ms", write_ms, float),
        }
        given = {name: values for name, values in swept.items() if values}
        if acquire_mode not in ("batch_optimized", "record_limit"):
            raise UsageFailed(f"--acquire-mode {acquire_mode}: must be batch_optimized or record_limit")
        if trace is None:
            from sharecore.jobs.load import Load

            base = Load(
                arrivals=arrivals,
                record_limit=acquire_mode == "record_limit",
                renew=renew,
                duration_s=duration,
                seed=seed,
                **{name: values[0] for name, values in given.items() if len(values) == 1},
            )
            axes = {name: values for name, values in given.items() if len(values) > 1}
            run = _loads(base, axes, partitions)
            facts = {name: value for name, value in asdict(base).items() if name not in axes}
            names = list(axes)
        else:
            others = [f"--{name.replace('_', '-')}" for name in given if name not in _TRACE_OPTIONS]
            if others:
                raise UsageFailed(f"--trace: {', '.join(others)} would have no effect on a trace")
            limits = {_TRACE_OPTIONS[name]: values for name, values in given.items()}
            run, facts, names = _traces(trace, limits), {"trace": trace}, ["trace", *limits]
        html = report_path(out, report)
        parquet = None if out is None else parquet_path(out, "runs", overwrite=overwrite)
        with session("simulate", master) as spark:
            rows = collect(spark, run(spark), "simulating", parquet)
        from sharecore.jobs.simulate_report import simulation_report

        _show(rows, names)
        write_report(simulation_report(rows, names, facts), html)


def _loads(base: Load, axes: dict[str, list[Any]], partitions: int) -> Callable[[SparkSession], DataFrame]:
    from sharecore.jobs.simulate import plan, simulate_runs

    runs = plan(base, axes, partitions)
    return lambda spark: simulate_runs(spark, runs)


def _traces(path: str, limits: dict[str, list[Any]]) -> Callable[[SparkSession], DataFrame]:
    import itertools

    from sharecore.jobs.simulate import replay_traces

    points = [dict(zip(limits, point, strict=True)) for point in itertools.product(*limits.values())]
    return lambda spark: replay_traces(spark, path, points)


def _values(option: str, text: str | None, kind: Callable[[str], Any]) -> list[Any]:
    if text is None:
        return []
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise CommandFailed(f"{option} {text}: must be a number, or several separated by commas") from None


def _show(rows: Sequence[dict[str, Any]], axes: Sequence[str]) -> None:
    from sharecore.jobs.charts import number

    rows = sorted(rows, key=lambda row: (row["point"], row.get("trace", ""), row.get("partition", 0)))
    show(
        [*(axis.upper() for axis in axes), *_SHOWN.values()],
        [[*(str(row[axis]) for axis in axes), *(number(row[name]) for name in _SHOWN)] for row in rows],
    )
