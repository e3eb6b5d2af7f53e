"""`sharecore verify`: proof that a cluster keeps its promises, or the lines that show that it does not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.clients import CommandFailed, UsageFailed, ctrl_c_ends, failures_in_one_line
from sharecore.cli.store import progress_bar

if TYPE_CHECKING:
    from sharecore.verify.check import Result

EXIT_BREACH = 1


class _CannotRun(CommandFailed):
    """Nothing was proved, neither way."""

    status = 2


def verify(
    history: Annotated[
        Optional[list[Path]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            metavar="FILE", help="Check a recorded history instead of a cluster; repeat it for parts of one."
        ),
    ] = None,
    report: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Write the result as an HTML page that needs nothing else."),
    ] = None,
) -> None:
    """Prove that a cluster with share groups keeps its promises.

    \b
    sharecore verify --history run.jsonl                     check a recorded history
    sharecore verify --history run.jsonl --report run.html   and show it on a page

    A history holds every call with its start, end and outcome. docs/verify.md describes the format, so that
    the histories of other workloads can be checked, and each promise.

    \b
    exit status 0  no promise was broken
                1  a promise was broken; the lines of the history that show it are printed
                2  nothing was proved: wrong usage, no history, or no cluster
    """
    with failures_in_one_line(), ctrl_c_ends():
        if not history:
            raise UsageFailed("--history FILE is needed")
        result = _checked(history)
        _show(result, report)
    if result.counts:
        raise typer.Exit(EXIT_BREACH)


def _checked(history: list[Path]) -> Result:
    from sharecore.verify.check import check
    from sharecore.verify.history import HistoryError

    try:
        with progress_bar("checking") as progress:
            size = sum(path.stat().st_size for path in history)
            return check(history, lambda done: progress(done, size))
    except HistoryError as error:
        raise _CannotRun(str(error)) from None
    except OSError as error:
        raise _CannotRun(f"{error.filename}: {error.strerror}") from None


def _show(result: Result, report: Path | None) -> None:
    from sharecore.verify.report import page, summary

    for line in summary(result):
        typer.echo(line)
    if report is not None:
        try:
            report.write_text(page(result), encoding="utf-8")
        except OSError as error:
            raise _CannotRun(f"{report} cannot be written: {error.strerror}") from None
        typer.echo(f"the page is {report}", err=True)
