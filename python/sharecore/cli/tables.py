"""Tables: for a person at a terminal, or plain columns for a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from sharecore.cli.printable import printable


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with columns as wide as needed, without characters that a terminal would interpret."""
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


_OUTPUTS = ("table", "json")


def _output(text: str) -> str:
    if text not in _OUTPUTS:
        raise typer.BadParameter(f"{text}: must be one of {', '.join(_OUTPUTS)}")
    return text


Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="table|json",
        help="json: one document.",
        callback=_output,
        autocompletion=lambda: list(_OUTPUTS),
    ),
]


def show_list(output: str, columns: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
    """Print a list: as a table, or as a JSON array of objects.

    Args:
        output: table or json.
        columns: the names of a JSON object's fields, and the headers of the columns.
        rows: a value for each column; None shows as a dash, a list as its items separated by blanks.
    """
    if output == "json":
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        show(list(columns.values()), [[_cell(value) for value in row] for row in rows])


def print_json(document: object) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=2))


def _cell(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)


def known(number: int | None) -> str:
    """Return a number, or a dash for None."""
    return "-" if number is None else str(number)
