"""What the commands that act as a client have in common."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import click
import typer
from click.core import ParameterSource
from typer.models import OptionInfo

if TYPE_CHECKING:
    from pathlib import Path

    from confluent_kafka import KafkaError

CONNECT_SECONDS_MAX = 5.0
_PART_SECONDS_MIN = 0.05
_PORT_MAX = 65_535

BOOTSTRAP = "localhost:9092"
VARIABLE = "SHARECORE_BOOTSTRAP_SERVER"


def bootstrap_option(about: str, variable: str | None = VARIABLE) -> OptionInfo:
    """`--bootstrap-server`, `-b` or the environment's SHARECORE_BOOTSTRAP_SERVER, as for every command.

    Args:
        about: the help text.
        variable: None where the environment counts only behind something else that was said, as it would be
            taken for what was given.
    """
    option: OptionInfo = typer.Option(
        "--bootstrap-server", "-b", metavar="HOST:PORT", envvar=variable, help=about
    )
    return option


_ABOUT = "A broker of the cluster: ours, or Apache Kafka 4.2 and later."
Bootstrap = Annotated[str, bootstrap_option(_ABOUT)]
BootstrapOfOne = Annotated[str, bootstrap_option(_ABOUT, None)]
"""The same of one of several commands that have it in common: empty where it was not given to this one."""
BootstrapOrDirectory = Annotated[
    str,
    bootstrap_option(
        f"A broker, ours or Apache Kafka 4.2 and later.  [env var: {VARIABLE}; default: {BOOTSTRAP}]", None
    ),
]
"""The same beside --data-dir: empty where it was not given."""


def usual_bootstrap() -> str:
    """Return the cluster of a command that names none."""
    return os.environ.get(VARIABLE) or BOOTSTRAP


def names_cluster() -> bool:
    """Return whether the running command got its cluster from an option or the environment."""
    if os.environ.get(VARIABLE):
        return True
    context = click.get_current_context(silent=True)
    sources = []
    # commands below `groups` take the option before and after their name
    while context is not None:
        sources.append(context.get_parameter_source("bootstrap"))
        context = context.parent
    known = [source for source in sources if source is not None]
    return not known or any(source is not ParameterSource.DEFAULT for source in known)


class CommandFailed(Exception):
    """What a command could not do; the text is all that its user needs."""

    status = 1


class UsageFailed(CommandFailed):
    """A command that cannot be understood: an option's value, or options that exclude each other."""

    status = 2


def check_one_source(data_dir: Path | None, bootstrap: str) -> None:
    """Raise CommandFailed if a command is given both a directory and a broker."""
    if data_dir is not None and bootstrap:
        raise UsageFailed("--data-dir and --bootstrap-server exclude each other")


@contextmanager
def failures_in_one_line() -> Iterator[None]:
    """End the program with one line on stderr if a command fails: status 1, or 2 for its usage."""
    try:
        yield
    except CommandFailed as failure:
        typer.echo(f"sharecore: {failure}", err=True)
        raise typer.Exit(failure.status) from None


@contextmanager
def ctrl_c_ends() -> Iterator[None]:
    """End the program with status 130 at Ctrl-C, as shells expect it, and without another word."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@contextmanager
def confluent_failures() -> Iterator[None]:
    """Make an error of confluent-kafka's one line, and of Ctrl-C the end; within `failures_in_one_line`."""
    from confluent_kafka import KafkaException

    with ctrl_c_ends():
        try:
            yield
        except KafkaException as error:
            raise CommandFailed(error.args[0].str()) from None


def connect(
    servers: str, seconds: float = CONNECT_SECONDS_MAX, prefix: str = "--bootstrap-server "
) -> socket.socket:
    """Return a connection to the first of comma-separated HOST:PORT addresses that accepts one.

    Args:
        seconds: time limit for all addresses together; each gets an equal part of what remains.
        prefix: what the message about an invalid address puts before the addresses.

    Raises:
        UsageFailed: an address cannot be read.
        CommandFailed: none of them accepts a connection.
    """
    addresses = [each.strip() for each in servers.split(",") if each.strip()] or [servers]
    places = [_place(each, f"{prefix}{servers}") for each in addresses]
    failures = []
    until = time.monotonic() + seconds
    for number, (address, place) in enumerate(zip(addresses, places, strict=True)):
        part = max(_PART_SECONDS_MIN, (until - time.monotonic()) / (len(places) - number))
        try:
            return socket.create_connection(place, part)
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
    raise CommandFailed(f"no broker at {'; '.join(failures)}")


def _place(address: str, named: str) -> tuple[str, int]:
    """Return the host and port of an address, which may start with a protocol; raise UsageFailed."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _PORT_MAX:
        raise UsageFailed(f"{named}: not HOST:PORT")
    return host.strip("[]"), int(port)


def is_refusal(error: KafkaError) -> bool:
    """Return whether retrying cannot help: confluent-kafka reports invalid certificates or credentials."""
    from confluent_kafka import KafkaError

    return error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)
