"""Tables: for a person at a terminal, or plain columns for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table, its columns as wide as they have to be."""
    if sys.stdout.isatty():
        from rich import print as write
        from rich.table import Table

        table = Table(*header, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*row)
        write(table)
        return
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def known(number: int | None) -> str:
    """A number, or a dash where there is none."""
    return "-" if number is None else str(number)
