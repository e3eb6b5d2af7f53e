"""What a redrive looks like as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharecore.jobs.charts import bar_chart
from sharecore.jobs.report import Report

Row = Mapping[str, Any]


def redrive_report(planned: Sequence[Row], moved: Sequence[Row], facts: Mapping[str, object]) -> Report:
    """Return the report on a plan and its execution.

    Args:
        planned: a row a partition: topic, partition, rejected, exhausted, done.
        moved: a row a partition and target: records, and the first and last offset that they were given.
    """
    report = Report("Redrive of archived records", facts)
    bars = [(f"{row['topic']}-{row['partition']}", row["rejected"] + row["exhausted"]) for row in planned]
    report.charts("To redrive", [bar_chart("Archived records", bars[:64], y="records")])
    report.table(
        "Plan",
        ["partition", "rejected", "exhausted", "done before"],
        [
            [f"{row['topic']}-{row['partition']}", row["rejected"], row["exhausted"], row["done"]]
            for row in planned
        ],
    )
    if facts.get("executed"):
        report.table(
            "Produced",
            ["from", "to", "records", "first offset", "last offset"],
            [
                [
                    f"{row['topic']}-{row['topicPartition']}",
                    f"{row['toTopic']}-{row['toPartition']}",
                    row["records"],
                    row["first"],
                    row["last"],
                ]
                for row in moved
            ],
        )
    report.text(
        "Rejected: archived before the delivery limit, by a consumer or because the record is gone from the "
        "log. Exhausted: given up at the limit."
    )
    return report
