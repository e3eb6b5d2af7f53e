"""`sharecore config`: print an example, check a configuration, explain a setting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from sharecore.cli.clients import CommandFailed, failures_in_one_line
from sharecore.cli.serve import EXIT_USAGE, Assignments, gather
from sharecore.cli.typers import commands
from sharecore.plural import counted

config = commands(
    "Print, check and explain the broker's settings.",
)


@config.command("example", short_help="Print all settings as a commented file.")
def example() -> None:
    """Print a file for `sharecore serve --config` with every setting, its default and its description.

    \b
    sharecore config example > server.properties
    """
    from sharecore.config.example import example as text

    typer.echo(text(), nl=False)


@config.command("check", short_help="Check a configuration file.")
def check(
    file: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Argument(metavar="[FILE]", help="What `sharecore serve --config` would be given."),
    ] = None,
    settings: Assignments = None,
) -> None:
    """Check a configuration file, the environment and --set for invalid, ineffective and unknown settings.

    Nothing is started or written. The exit status is 0 if a broker would start with these settings, 2 if it
    would refuse them.
    """
    from sharecore.config import (
        BrokerConfig,
        check_spelling,
        listeners_of,
        misspelled,
        remarks_on,
        unknown_names,
    )
    from sharecore.config.environment import settings_of
    from sharecore.errors import ConfigError

    with failures_in_one_line():
        try:
            properties = gather(file, settings or [], environment=os.environ)
        except ConfigError as error:
            raise CommandFailed(str(error)) from None
    for name in unknown_names(properties):
        if name not in misspelled(properties):
            typer.echo(f"unknown: {name}: no setting of this broker or of Kafka's; it would be ignored")
    for remark in remarks_on(properties):
        typer.echo(remark)
    for name, value in settings_of(os.environ).items():
        if properties.get(name) == value:
            typer.echo(f"from the environment: {name}")
    try:
        check_spelling(properties)
        found = BrokerConfig.from_properties(properties)
        listeners_of(found)
    except ConfigError as error:
        for line in str(error).splitlines():
            typer.echo(f"refused: {line}", err=True)
        raise typer.Exit(EXIT_USAGE) from None
    what = counted(len(found.explicit), "setting")
    typer.echo(f"{what} with an effect; a broker would start with them")


@config.command("explain", short_help="Explain a setting.")
def explain(name: Annotated[str, typer.Argument(metavar="NAME", help="Such as log.dirs.")]) -> None:
    """Explain a setting of brokers, topics or groups: its effect, allowed values and default."""
    from sharecore.config.example import explain as text

    with failures_in_one_line():
        try:
            typer.echo(text(name))
        except KeyError as error:
            similar = error.args[0]
            hint = f"; similar: {similar}" if similar else ""
            raise CommandFailed(f"{name}: no setting of this broker or of Kafka's{hint}") from None
