"""What the tables of `sharecore top` show: rows out of two looks at a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

_SHORT = {
    "MEMBERS": "MEMB",
    "PARTITIONS": "PARTS",
    "START OFFSET": "START",
    "SETTLED/S": "SETL/S",
    "CAME BACK": "BACK",
    "IN FLIGHT": "FLIGHT",
    "OLDEST LEASE": "OLDEST",
}
_NAME_MIN = 8
_ARROWS = " ▼▲"


def group_rows(now: Look, before: Look | None) -> list[tuple[Cell, ...]]:
    """Return a row a group, in the order of the columns."""
    return [astuple(each) for each in group_figures(now, before)]


def partition_rows(group_id: str, now: Look, before: Look | None) -> list[tuple[Cell, ...]]:
    """Return a row a share partition of a group."""
    return [
        (f"{topic}-{partition}", *figures)
        for topic, partition, *figures in map(astuple, partition_figures(group_id, now, before))
    ]


def arranged(
    rows: Iterable[tuple[Cell, ...]], column: int, *, descending: bool, wanted: str = ""
) -> list[tuple[Cell, ...]]:
    """Return the rows whose name contains `wanted`, sorted by a column."""
    chosen = [row for row in rows if wanted.lower() in str(row[0]).lower()]
    chosen.sort(key=lambda row: str(row[0]))
    chosen.sort(key=lambda row: _key(row[column]), reverse=descending)
    return chosen


def shown(cell: Cell) -> str:
    """Return a cell as it is printed."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def fitted(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, padding: int
) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows that fit a terminal: with short headings, then with shorter names.

    Args:
        headings: as the columns are named; what follows a name, such as an arrow, is kept.
        rows: a cell a column, the name first.
        width: of the terminal, in characters.
        padding: characters around each cell.
    """

    def wide(names: Sequence[str]) -> list[int]:
        return [max(map(len, column)) + padding for column in zip(names, *rows, strict=True)]

    names = list(headings)
    if sum(wide(names)) > width:
        names = [_SHORT.get(column := each.rstrip(_ARROWS), column) + each[len(column) :] for each in names]
    left = max(_NAME_MIN, width - sum(wide(names)[1:]) - padding)
    return names, [[shortened(row[0], left), *row[1:]] for row in rows]


def shortened(name: str, width: int) -> str:
    """Return a name in at most `width` characters, without its middle: names differ at their ends."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}…{name[len(name) - (width - 1 - head) :]}"


def _key(cell: Cell) -> tuple[int, float, str]:
    if cell is None:
        return (0, 0.0, "")
    return (1, 0.0, cell) if isinstance(cell, str) else (1, float(cell), "")
