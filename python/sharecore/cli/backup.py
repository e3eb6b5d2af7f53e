"""`sharecore backup`: a copy of a data directory while its broker runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sharecore.cli.clients import CommandFailed, ctrl_c_ends
from sharecore.cli.store import failures, progress_bar, show_damage

EXIT_DAMAGED = 1


def backup(
    to: Annotated[
        str,
        typer.Argument(metavar="DIR|-", help="A new directory for the copy; -: a tar archive on stdout."),
    ],
    data_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="The data directory; its broker may be running.")
    ] = Path("data"),
    check: Annotated[bool, typer.Option(help="Read the finished copy and verify every checksum.")] = True,
) -> None:
    """Copy a data directory while its broker runs.

    \b
    sharecore backup ./backup-1                        a copy of ./data
    sharecore backup --data-dir /var/lib/sharecore - | zstd > backup.tar.zst
    sharecore serve --data-dir ./backup-1              start on the copy

    The copy is a consistent snapshot: it holds every record, acknowledgement and offset that was confirmed
    when the command started. The command needs read access to the directory, and no connection to the broker.
    Copying the files of a running broker by other means does not give a usable backup.

    \b
    exit status 0  the copy is complete and intact
                1  the copy is complete, but the directory was damaged
                2  no copy
    """
    from sharecore.storage.backup import back_up, stream_backup
    from sharecore.storage.damage import survey

    with failures(), ctrl_c_ends():
        if to == "-":
            if sys.stdout.isatty():
                raise CommandFailed("an archive does not go to a terminal: sharecore backup - > backup.tar")
            with progress_bar("copying") as progress:
                copied = stream_backup(data_dir, sys.stdout.buffer, progress)
        else:
            with progress_bar("copying") as progress:
                copied = back_up(data_dir, Path(to), progress)
        typer.echo(f"{copied.files} files, {copied.bytes / 1e6:.1f} MB copied from {data_dir}", err=True)
        if to == "-" or not check:
            return
        with progress_bar("checking") as progress:
            damage = survey(Path(to), progress)
    if not damage.is_whole:
        show_damage(damage)
        typer.echo(f"{data_dir} is damaged, and so is the copy; sharecore store check --help says what to do")
        raise typer.Exit(EXIT_DAMAGED)
    typer.echo(f"{to} is whole; sharecore serve --data-dir {to} serves it", err=True)
