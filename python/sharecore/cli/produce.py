"""`sharecore produce`: values from the command line or, line by line, from standard input."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from sharecore.cli.admin import Settings, SettingsFile, confluent_settings
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, check_clients, ctrl_c_ends, failures_in_one_line

ANSWER_SECONDS_MAX = 30


def produce(
    topic: Annotated[str, typer.Argument(help="Made where the broker may make topics by itself.")],
    values: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Argument(metavar="[VALUE]...", help="One record each; the lines of stdin where there is none."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    settings: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Write records to a topic, and wait until the broker has answered for each."""
    with failures_in_one_line():
        check_clients(bootstrap)
        from sharecore.cli.producing import Records

        chosen = confluent_settings(bootstrap, settings, command_config)
        with ctrl_c_ends(), Records(chosen, ANSWER_SECONDS_MAX) as records:
            for value in values or (line.rstrip("\n") for line in sys.stdin):
                records.send(topic, value.encode())
            records.finish()
        noun = "record" if records.count == 1 else "records"
        typer.echo(f"{records.count} {noun} written to {topic}")
