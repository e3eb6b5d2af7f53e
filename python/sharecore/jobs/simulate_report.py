"""What the rows of a simulation look like as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import mean
from typing import Any

from sharecore.jobs.charts import bar_chart, line_chart
from sharecore.jobs.report import Report

_COLUMNS = {
    "throughput": "records/s",
    "redelivery_rate": "redelivered",
    "lock_timeouts": "lock timeouts",
    "archived": "archived",
    "unfinished": "unfinished",
    "latency_p50_ms": "p50 ms",
    "latency_p99_ms": "p99 ms",
    "inflight_max": "in flight max",
    "leased_mean": "leased mean",
    "utilisation": "members busy",
}
_CHARTS = {
    "throughput": ("Throughput", "records/s"),
    "latency_p99_ms": ("Latency, 99th percentile", "ms"),
    "redelivery_rate": ("Redelivered", "part of deliveries"),
    "lock_timeouts": ("Lock timeouts", "records"),
    "archived": ("Archived", "records"),
    "inflight_max": ("In flight, highest", "offsets"),
}
_OVER_TIME = {"backlog": "Not settled", "leased": "Leased"}

Row = Mapping[str, Any]


def simulation_report(rows: Sequence[Row], axes: Sequence[str], facts: Mapping[str, object]) -> Report:
    """Return the report of a simulation.

    Args:
        rows: a run each, as `simulate_runs` or `replay_traces` has them.
        axes: what was varied; a name of a column each.
        facts: what was not.
    """
    report = Report("Simulation of a share partition", facts)
    points = [_average(list(some)) for _, some in groupby(sorted(rows, key=_point), key=_point)]
    report.table(
        f"{len(points):,} points, {len(rows):,} runs; means over the runs of a point",
        [*axes, *_COLUMNS.values()],
        [[*(row[axis] for axis in axes), *(row[name] for name in _COLUMNS)] for row in points],
    )
    if len(points) > 1:
        report.charts("Over the parameters", [_over(points, axes, name) for name in _CHARTS])
    report.charts(
        "Over time",
        [
            line_chart(
                title,
                {
                    _label(row, axes): [(sample["at_s"], sample[name]) for sample in row["samples"]]
                    for row in points
                },
                x="seconds",
                y="records",
            )
            for name, title in _OVER_TIME.items()
        ],
    )
    report.text(
        "Latency: from a record's arrival to its durable acceptance. In flight: offsets from the start "
        "offset to the end offset, which share.partition.max.record.locks bounds. Leased: held by members. "
        "Redelivered: the part of all deliveries that were not the first of their record."
    )
    return report


def _point(row: Row) -> tuple[int, str]:
    return row["point"], row.get("trace", "")


def _average(rows: Sequence[Row]) -> dict[str, Any]:
    return {**rows[0], **{name: mean(row[name] for row in rows) for name in _COLUMNS}}


def _over(points: Sequence[Row], axes: Sequence[str], name: str) -> str:
    title, unit = _CHARTS[name]
    counts = {axis: len({row[axis] for row in points}) for axis in axes}
    numeric = [axis for axis in axes if all(_is_number(row[axis]) for row in points)]
    if not numeric:
        return bar_chart(title, [(_label(row, axes), row[name]) for row in points], y=unit)
    along = max(numeric, key=lambda axis: counts[axis])
    others = [axis for axis in axes if axis != along and counts[axis] > 1]
    series: dict[str, list[tuple[float, float]]] = {}
    for row in sorted(points, key=lambda row: row[along]):
        series.setdefault(_label(row, others), []).append((row[along], row[name]))
    return line_chart(title, series, x=along, y=unit)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(row: Row, axes: Sequence[str]) -> str:
    return ", ".join(f"{axis}={row[axis]}" for axis in axes)
