"""Figures as markdown tables, on the screen and in the documentation."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

BEGIN, END = "<!-- make bench: begin -->", "<!-- make bench: end -->"


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    table: Table


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    shown = Table(box=box.MARKDOWN)
    for number, head in enumerate(heads):
        shown.add_column(head, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    return shown


def write(document: Path, sections: Iterable[Section], machine: str) -> None:
    """Put the tables between the two marks of a document.

    Raises:
        ValueError: the document lacks the marks.
    """
    out = io.StringIO()
    console = Console(file=out, width=160)
    for section in sections:
        console.print(f"{section.title}:")
        console.print(section.table)
    console.print(machine + ".")
    text = document.read_text()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{document} lacks {BEGIN} and {END}")
    tables = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    document.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}")
