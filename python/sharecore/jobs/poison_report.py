"""What poison records look like as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sharecore.jobs.charts import bar_chart
from sharecore.jobs.report import ROWS_MAX, Report, readable

SHOWN_MAX = ROWS_MAX
Row = Mapping[str, Any]


def poison_report(rows: Sequence[Row], of: int, facts: Mapping[str, object]) -> Report:
    """Return the report on rows of `poison.poison_records`.

    Args:
        rows: the first of them, at most SHOWN_MAX.
        of: how many there are.
    """
    report = Report("Poison records", facts)
    counts = Counter(f"{row['topic']}-{row['partition']}" for row in rows)
    report.charts("Where they are", [bar_chart("Records", counts.most_common(16), y="records")])
    report.table(
        "Records",
        ["partition", "offset", "delivered", "timestamp", "key", "value", "headers"],
        [
            [
                f"{row['topic']}-{row['partition']}",
                row["offset"],
                row["deliveryCount"],
                row["timestamp"],
                _bytes(row["key"]),
                _bytes(row["value"]),
                header_text(row["headers"]),
            ]
            for row in rows
        ],
        of,
    )
    return report


def header_text(headers: Sequence[Mapping[str, Any]] | None) -> str:
    """Headers as a line of text."""
    return ", ".join(
        f"{header['key']}={'null' if header['value'] is None else readable(bytes(header['value']))}"
        for header in headers or ()
    )


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
