"""What the tables of `sharecore top` show: rows out of two looks at a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

from sharecore.admin.watch import Look, group_figures, partition_figures

Cell = str | int | float | None
"""A value to sort by; None is not known, and sorts as the least."""

GROUP_COLUMNS = (
    "GROUP",
    "STATE",
    "MEMBERS",
    "PARTITIONS",
    "LAG",
    "SETTLED/S",
    "NEW/S",
    "CAME BACK",
    "IN FLIGHT",
)
PARTITION_COLUMNS = ("PARTITION", "START OFFSET", "LAG", "SETTLED/S", "NEW/S", "IN FLIGHT", "OLDEST LEASE")


def group_rows(now: Look, before: Look | None) -> list[tuple[Cell, ...]]:
    """A row a group, in the order of the columns."""
    return [astuple(each) for each in group_figures(now, before)]


def partition_rows(group_id: str, now: Look, before: Look | None) -> list[tuple[Cell, ...]]:
    """A row a share partition of a group."""
    return [
        (f"{topic}-{partition}", *figures)
        for topic, partition, *figures in map(astuple, partition_figures(group_id, now, before))
    ]


def arranged(
    rows: Iterable[tuple[Cell, ...]], column: int, *, descending: bool, wanted: str = ""
) -> list[tuple[Cell, ...]]:
    """The rows whose name contains `wanted`, sorted by a column."""
    chosen = [row for row in rows if wanted.lower() in str(row[0]).lower()]
    chosen.sort(key=lambda row: str(row[0]))
    chosen.sort(key=lambda row: _key(row[column]), reverse=descending)
    return chosen


def shown(cell: Cell) -> str:
    """A cell as it is printed."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _key(cell: Cell) -> tuple[int, float, str]:
    if cell is None:
        return (0, 0.0, "")
    return (1, 0.0, cell) if isinstance(cell, str) else (1, float(cell), "")
