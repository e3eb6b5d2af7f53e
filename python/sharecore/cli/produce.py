"""`sharecore produce`: values from the command line or, line by line, from standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from sharecore.cli.admin import Settings, SettingsFile, confluent_settings
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    check_clients,
    ctrl_c_ends,
    failures_in_one_line,
)

if TYPE_CHECKING:
    from sharecore.cli.producing import Records

ANSWER_SECONDS_MAX = 30
_SIZE = "message.max.bytes"
_LINE_BYTES_MAX = 100 << 20
"""What a broker takes in one request, unless it is set otherwise (socket.request.max.bytes)."""


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
    """Write records to a topic, and wait until the broker has answered for each.

    A record is the bytes of a line as they are, without the line feed at its end; an empty line is an empty
    record. On a failure no more is read, and how many records are written is said.
    """
    with failures_in_one_line():
        check_clients(bootstrap)
        from sharecore.cli.producing import Records

        chosen = confluent_settings(bootstrap, settings, command_config)
        chosen.setdefault(_SIZE, _LINE_BYTES_MAX)
        with ctrl_c_ends(), Records(chosen, ANSWER_SECONDS_MAX) as records:
            try:
                failure = _send(records, topic, map(os.fsencode, values) if values else _lines(chosen))
                try:
                    records.finish()
                except CommandFailed as error:
                    failure = failure or error
                if failure is not None:
                    raise CommandFailed(f"{failure}; {_written(records.written)} to {topic}")
            except KeyboardInterrupt:
                typer.echo(f"sharecore: interrupted; {_written(records.written)} to {topic}", err=True)
                raise
        typer.echo(f"{_written(records.written)} to {topic}")


def _send(records: Records, topic: str, values: Iterable[bytes]) -> CommandFailed | None:
    """Send values until one is refused; return why no more can be read or sent."""
    try:
        for value in values:
            records.send(topic, value)
            if records.failed:
                break
    except CommandFailed as error:
        return error
    return None


def _written(count: int) -> str:
    return f"{count} {'record' if count == 1 else 'records'} written"


def _lines(settings: Mapping[str, Any]) -> Iterator[bytes]:
    """The lines of standard input; raises CommandFailed where it cannot be read, or a line has no end."""
    if sys.stdin is None:
        raise CommandFailed("standard input is closed: give values as arguments, or redirect a file")
    longest = int(settings[_SIZE])
    number = 0
    while True:
        try:
            line = sys.stdin.buffer.readline(longest + 2)
        except OSError as error:
            raise CommandFailed(f"standard input cannot be read: {error.strerror or error}") from None
        if not line:
            return
        number += 1
        value = line.removesuffix(b"\n")
        if len(value) > longest:
            raise CommandFailed(f"line {number} is longer than {_SIZE}={longest}; raise it with --set")
        yield value
