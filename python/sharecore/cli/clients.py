"""What the commands that act as a client have in common."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer
from click.core import ParameterSource

if TYPE_CHECKING:
    from pathlib import Path

CONNECT_SECONDS_MAX = 5.0

BOOTSTRAP = "localhost:9092"
VARIABLE = "SHARECORE_BOOTSTRAP_SERVER"


def bootstrap_option(about: str, variable: str | None = VARIABLE) -> Any:
    """`--bootstrap-server`, `-b` or the environment's SHARECORE_BOOTSTRAP_SERVER, as for every command.

    Args:
        about: the help text.
        variable: None where the environment counts only behind something else that was said, as it would be
            taken for what was given.
    """
    return typer.Option("--bootstrap-server", "-b", metavar="HOST:PORT", envvar=variable, help=about)


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
    """Return the cluster of whoever names none."""
    return os.environ.get(VARIABLE) or BOOTSTRAP


def names_cluster() -> bool:
    """Return whether the command that runs was given its cluster, by an option or the environment."""
    context = click.get_current_context(silent=True)
    if context is None or os.environ.get(VARIABLE):
        return True
    return context.get_parameter_source("bootstrap") is not ParameterSource.DEFAULT


class CommandFailed(Exception):
    """What a command could not do; the text is all that its user needs."""

    status = 1


class UsageFailed(CommandFailed):
    """A command that cannot be understood: an option's value, or options that exclude each other."""

    status = 2


def check_one_source(data_dir: Path | None, bootstrap: str) -> None:
    """Raise CommandFailed where a command is given both a directory and a broker."""
    if data_dir is not None and bootstrap:
        raise UsageFailed("--data-dir and --bootstrap-server exclude each other")


@contextmanager
def failures_in_one_line() -> Iterator[None]:
    """End the program with one line on stderr where a command failed: status 1, or 2 for its usage."""
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


def connect(address: str, seconds: float = CONNECT_SECONDS_MAX) -> socket.socket:
    """Return a connection to HOST:PORT, the first where there are several, within so many seconds.

    Raises:
        UsageFailed: the address cannot be read.
        CommandFailed: nobody listens there.
    """
    host, colon, port = address.split(",")[0].rpartition(":")
    if not colon or not port.isdecimal():
        raise UsageFailed(f"--bootstrap-server {address}: not HOST:PORT")
    try:
        return socket.create_connection((host.strip("[]"), int(port)), seconds)
    except OSError as error:
        raise CommandFailed(f"no broker at {address}: {error.strerror or error}") from None


def is_refusal(error: Any) -> bool:
    """Whether an error of confluent-kafka's says that no time will help: certificates or credentials."""
    from confluent_kafka import KafkaError

    return error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)
