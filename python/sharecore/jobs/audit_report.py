"""What an audit looks like as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sharecore.jobs.charts import bar_chart
from sharecore.jobs.report import Report

Row = Mapping[str, Any]


def audit_report(findings: Sequence[Row], counted: Sequence[Row], facts: Mapping[str, object]) -> Report:
    """Return the report on rows of `audit.findings` and `audit.counted`."""
    errors = sum(row["severity"] == "error" for row in findings)
    summary = {
        **facts,
        "records": sum(row["snapshots"] + row["updates"] + row["tombstones"] for row in counted),
        "share partitions": len(counted),
        "errors": errors,
        "warnings": len(findings) - errors,
    }
    report = Report("Audit of share state", summary)
    by_rule = Counter(row["rule"] for row in findings).most_common()
    report.charts("Findings by rule", [bar_chart("Findings", by_rule, y="records")])
    report.table(
        "Findings",
        ["severity", "rule", "group", "share partition", "record", "explanation"],
        [
            [
                row["severity"],
                row["rule"],
                row["group"],
                place(row) if row["topicId"] else None,
                f"{row['partition']}:{row['offset']}",
                row["explanation"],
            ]
            for row in findings
        ],
    )
    report.table(
        "What was audited",
        ["group", "share partition", "snapshots", "updates", "tombstones", "first", "last"],
        [
            [
                row["group"],
                place(row),
                *(row[name] for name in ("snapshots", "updates", "tombstones", "first", "last")),
            ]
            for row in sorted(counted, key=lambda row: (row["group"], place(row)))
        ],
    )
    return report


def place(row: Row) -> str:
    """Return the share partition of a row, with its topic's name if known."""
    return f"{row['topic'] or row['topicId']}-{row['topicPartition']}"
