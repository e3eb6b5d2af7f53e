"""Tables: for a person at a terminal, or plain columns for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from sharecore.cli.printable import printable


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, its columns as wide as they have to be, with nothing that a terminal would act on."""
    rows = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich import print as write
        from rich.table import Table
        from rich.text import Text

        table = Table(*header, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*map(Text, row))
        write(table)
        return
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def known(number: int | None) -> str:
    """A number, or a dash where there is none."""
    return "-" if number is None else str(number)
