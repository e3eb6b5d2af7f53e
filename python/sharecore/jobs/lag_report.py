"""What lag and age look like as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharecore.jobs.charts import bar_chart
from sharecore.jobs.report import Report

_BARS_MAX = 16
_COLUMNS = {
    "startOffset": "start offset",
    "logStartOffset": "log start",
    "logEndOffset": "log end",
    "lag": "lag",
    "settled": "settled behind start",
    "redelivered": "redelivered",
    "lagWithoutRedelivered": "lag without them",
    "lagBytes": "lag bytes, about",
    "deliveryCountMax": "most deliveries",
    "oldestOffset": "oldest offset",
    "oldestTimestamp": "oldest record",
}
Row = Mapping[str, Any]


def lag_report(rows: Sequence[Row], facts: Mapping[str, object]) -> Report:
    """Return the report on rows of `lag.lag`."""
    report = Report("Lag and age of share partitions", {**facts, "share partitions": len(rows)})
    for title, name, scale, unit in (
        ("Lag", "lag", 1, "records"),
        ("Age of the oldest record that is not settled", "ageMs", 1000, "seconds"),
        ("Delivered, not acknowledged, waiting", "redelivered", 1, "records"),
    ):
        most = sorted((row for row in rows if row[name]), key=lambda row: -row[name])[:_BARS_MAX]
        bars = [(f"{place(row)} {row['group']}", row[name] / scale) for row in most]
        report.charts(f"{title}: the {len(bars)} highest", [bar_chart(title, bars, y=unit)])
    report.table(
        "Share partitions",
        ["group", "partition", *_COLUMNS.values(), "age"],
        [
            [row["group"], place(row), *(row[name] for name in _COLUMNS), age(row["ageMs"])]
            for row in sorted(rows, key=lambda row: -(row["lag"] or 0))
        ],
    )
    report.text(
        "Reckoned from the state that is written: which records members hold at the moment is no part of it. "
        "Redelivered records were delivered, not acknowledged, and wait to be delivered again."
    )
    return report


def age(ms: int | None) -> str:
    """Return a time span for a person."""
    if ms is None:
        return "-"
    seconds = ms // 1000
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            return f"{seconds // size} {unit} {seconds % size // smaller} {name}"
    return f"{seconds} s" if seconds else f"{ms / 1000:.1f} s"


def place(row: Row) -> str:
    """Return the share partition of a row, with its topic's name if known."""
    return f"{row['topic'] or row['topicId']}-{row['partition']}"
