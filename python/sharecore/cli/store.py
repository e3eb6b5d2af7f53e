"""`sharecore store`: a data directory that is damaged, or may be."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.clients import CommandFailed
from sharecore.cli.tables import Output, show
from sharecore.cli.typers import commands
from sharecore.plural import counted

if TYPE_CHECKING:
    from sharecore.storage.damage import Damage, Part, Progress

EXIT_DAMAGED, EXIT_NOT_DONE = 1, 2
_SHOWN_MAX = 50

store = commands(
    "Check a data directory, or salvage the intact part of a damaged one.",
)

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="A data directory; its broker must be stopped.")
]
AsJson = Annotated[bool, typer.Option("--json", hidden=True, help="As --output json.")]


@store.callback()
def options() -> None:
    """Check a data directory, or salvage the intact part of a damaged one."""


@store.command("check", short_help="Find damage in a data directory.")
def check(directory: Directory, output: Output = "table", as_json: AsJson = False) -> None:
    """Read all of a data directory and report what is damaged and what is lost. Nothing is changed.

    \b
    sharecore store check ./data
    sharecore store check ./data --output json | jq '.lost[]'

    The checksum of every journal frame, batch and index is verified. A broker refuses to start on a damaged
    directory, because confirmed records are missing; `sharecore store salvage` makes a new directory from the
    rest.

    \b
    exit status 0  no damage
                1  damage was found
                2  nothing to check, or a broker uses the directory
    """
    from sharecore.storage.damage import survey

    with failures(), progress_bar("reading") as progress:
        damage = survey(directory, progress)
    if as_json or output == "json":
        print_json(damage, None)
    else:
        show_damage(damage)
        if damage.is_whole:
            typer.echo(f"{directory} is whole: {counted(len(damage.kept), 'partition')}")
        else:
            typer.echo(f"\nsharecore store salvage {directory} --to NEWDIR keeps what is whole")
    if not damage.is_whole:
        raise typer.Exit(EXIT_DAMAGED)


@store.command("salvage", short_help="Make a new data directory from intact data.")
def salvage(
    directory: Directory,
    to: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--to", metavar="NEWDIR", help="The new directory; must not exist, or be empty."),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Give the new directory the old one's name; the old one is kept beside it."
        ),
    ] = False,
    output: Output = "table",
    as_json: AsJson = False,
) -> None:
    """Make a new data directory from the intact data of a damaged one, and list what is lost.

    \b
    sharecore store salvage ./data --to ./data.new && sharecore serve --data-dir ./data.new
    sharecore store salvage ./data --in-place          the damaged one is renamed ./data.damaged-1

    The damaged directory is only read. Records keep their offsets; intact topics, configurations, groups,
    committed offsets and share state are kept. Lost records are listed by partition and offset. Records whose
    topic is unknown become topics recovered-1, recovered-2 and so on. The new directory needs as much space
    as the records in the old one.

    \b
    exit status 0  nothing was lost
                1  the new directory was made, something was lost
                2  no new directory was made
    """
    from sharecore.storage import damage as work

    with failures():
        if (to is None) != in_place:
            raise CommandFailed("say where the new directory goes: --to NEWDIR, or --in-place")
        target = to or beside(directory, "salvaged")
        with progress_bar("salvaging") as progress:
            damage = work.salvage(directory, target, progress)
        if in_place:
            old = beside(directory, "damaged")
            directory.rename(old)
            target.rename(directory)
            target = directory
    if as_json or output == "json":
        print_json(damage, target)
    else:
        show_damage(damage)
        kept = sum(kept.bytes for kept in damage.kept)
        typer.echo(f"{target} has {counted(len(damage.kept), 'partition')}, {kept / 1e6:.1f} MB of records")
        if in_place:
            typer.echo(f"the damaged directory is {old}")
        typer.echo(f"sharecore serve --data-dir {target} serves it")
    if not damage.is_whole:
        raise typer.Exit(EXIT_DAMAGED)


def beside(directory: Path, what: str) -> Path:
    """Return a name beside a directory that nothing has."""
    directory = directory.absolute()
    number = 1
    while (path := directory.with_name(f"{directory.name}.{what}-{number}")).exists():
        number += 1
    return path


@contextmanager
def failures() -> Iterator[None]:
    """End the command with one line and status 2 if it cannot do its work."""
    try:
        yield
    except (CommandFailed, OSError) as error:
        typer.echo(f"sharecore: {error}", err=True)
        raise typer.Exit(EXIT_NOT_DONE) from None


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show on a terminal how far it is, once it takes longer than a moment."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def show_damage(damage: Damage) -> None:
    """Print damaged and lost data; of an intact directory only the cut end after a crash."""
    if damage.torn is not None:
        typer.echo(str(damage.torn))
    if damage.is_whole:
        return
    problems = [(problem.file, f"{problem.at:,}", problem.what) for problem in damage.problems]
    _table(("FILE", "BYTE", "DAMAGE"), problems, "places are damaged")
    typer.echo("")
    if damage.lost:
        lost = [(str(each.part), str(each.first), str(each.last)) for each in damage.lost]
        _table(("LOST", "FIRST OFFSET", "LAST OFFSET"), lost, "stretches are lost")
    else:
        typer.echo("no record is known to be lost")
    if damage.history_lost:
        typer.echo(
            "what the damaged frames held is not known: the newest records of any partition may be missing,\n"
            "and changes of topics, configurations and groups"
        )


def _table(header: tuple[str, str, str], rows: list[tuple[str, str, str]], what: str) -> None:
    show(header, rows[:_SHOWN_MAX])
    if len(rows) > _SHOWN_MAX:
        typer.echo(f"... {len(rows):,} {what}; --output json lists all")


def print_json(damage: Damage, target: Path | None) -> None:
    """One object with everything."""
    found: dict[str, object] = {
        "whole": damage.is_whole,
        "problems": [{"file": p.file, "byte": p.at, "what": p.what} for p in damage.problems],
        "lost": [_named(each.part) | {"first": each.first, "last": each.last} for each in damage.lost],
        "more_may_be_lost": damage.history_lost,
        "torn": damage.torn
        and {"file": damage.torn.file, "byte": damage.torn.at, "bytes": damage.torn.bytes},
        "partitions": [
            _named(each.part)
            | {"start": each.start, "end": each.end, "batches": each.batches, "bytes": each.bytes}
            for each in damage.kept
        ],
    }
    if target is not None:
        found["directory"] = str(target)
    typer.echo(json.dumps(found))


def _named(part: Part) -> dict[str, object]:
    return {"topic": part.topic, "partition": part.partition}
