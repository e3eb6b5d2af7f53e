"""The program `sharecore` and its commands."""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from importlib import import_module
from typing import Any

import click
import typer
from click.shell_completion import CompletionItem
from typer.core import TyperGroup

from sharecore.cli.completion import completion_options
from sharecore.cli.typers import commands

_COMMANDS = {
    "serve": "Run a broker.",
    "produce": "Write records to a topic.",
    "consume": "Consume records as a member of a share group.",
    "work": "Run a worker on the records of a topic.",
    "export-metrics": "Export metrics of any cluster's share groups to Prometheus.",
    "keda": "Serve the lag of share groups to KEDA, to scale workers.",
    "doctor": "Diagnose a configuration, a data directory or a cluster.",
    "top": "Watch share groups in a terminal.",
    "dashboard": "Serve a web page about share groups.",
    "verify": "Verify that a cluster keeps its guarantees.",
    "backup": "Copy a data directory while its broker runs.",
    "bucket": "Check a bucket, show its copy, restore from it.",
    "certs": "Make certificates for development.",
    "config": "Print, check and explain the broker's settings.",
    "dlq": "List, show and redrive dead-letter records.",
    "topics": "Create, list, describe, alter and delete topics.",
    "groups": "List, describe, reset and delete groups.",
    "schedules": "Write records to a topic at set times.",
    "spark": "Run Spark jobs over share groups.",
    "state": "Show the persisted state of share groups.",
    "store": "Check a data directory; salvage a damaged one.",
    "tier": "Manage tier nodes: status, move, drain, repair, adopt, return.",
    "acls": "Manage access-control entries.",
    "users": "Manage SCRAM users.",
}
"""Each in the module of its name."""


class _Program(TyperGroup):
    """Loads a command when it is wanted: all of them take longer than many a command does."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.params += completion_options()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # if no command has this name, load all: the closest one is suggested
        for name in {cmd_name} & _COMMANDS.keys() or _COMMANDS:
            if name not in self.commands:
                self.commands[name] = _load(name)
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without loading all of them."""
        names = [
            CompletionItem(name, help=about)
            for name, about in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@cache
def _load(name: str) -> click.Command:
    identifier = name.replace("-", "_")
    command = getattr(import_module(f"sharecore.cli.{identifier}"), identifier)
    holder = commands("")
    if isinstance(command, typer.Typer):
        holder.add_typer(command, name=name, short_help=_COMMANDS[name])
    else:
        holder.command(name, short_help=_COMMANDS[name])(command)
    return typer.main.get_group(holder).commands[name]


# importing rich would take longer than starting the broker
app = commands(
    "Kafka share groups (KIP-932) without the JVM.",
    cls=_Program,
    name="sharecore",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"sharecore {version('sharecore')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=_version, is_eager=True
    ),
) -> None:
    """Kafka share groups (KIP-932) without the JVM."""


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def main() -> None:
    """Run the program; never return."""
    status: int | str | None
    try:
        status = app(prog_name="sharecore")
    except SystemExit as end:
        status = end.code
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        status = f"sharecore: {error}"
    sys.exit(_written(status))


def _written(status: int | str | None) -> int | str | None:
    """Return what to end with once standard output has taken all. What it does not take is dropped: the
    interpreter would try that once more at its end, and end with a status of its own.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # a reader that closes the pipe early needs no message
        return status or (1 if error.errno == errno.EPIPE else f"sharecore: {error}")
    return status
