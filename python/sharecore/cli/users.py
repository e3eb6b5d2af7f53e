"""`sharecore users`: users of SCRAM."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, Value, administered
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed, UsageFailed, failures_in_one_line
from sharecore.cli.tables import Output, show_list
from sharecore.cli.typers import commands

if TYPE_CHECKING:
    from sharecore.admin.users import Users

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

users = commands(
    "Manage SCRAM users, here or on Apache Kafka.",
)
Name = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.")]
Mechanisms = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
    typer.Option("--mechanism", metavar="|".join(_MECHANISMS), help="May be repeated.  [default: both]"),
]


@users.command("list", short_help="List the users.")
def list_users(
    output: Output = "table",
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """List the users and their mechanisms."""
    with failures_in_one_line():
        found = _run(Cluster(bootstrap, setting, command_config, timeout), lambda admin: admin.list())
    show_list(
        output,
        {"user": "USER", "mechanism": "MECHANISM", "iterations": "ITERATIONS"},
        [
            [user.name, mechanism, iterations]
            for user in found
            for mechanism, iterations in sorted(user.mechanisms.items())
        ],
    )


@users.command("add", short_help="Add a user, or change a password.")
def add(
    name: Name,
    mechanism: Mechanisms = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Add a user or change a password. The password is prompted for, or read from a pipe.

    \b
    sharecore users add alice
    pass show kafka/alice | sharecore users add alice --mechanism SCRAM-SHA-512
    """
    with failures_in_one_line():
        chosen = _chosen(mechanism)
        password = _password(name)

        async def put(admin: Users) -> None:
            for each in chosen:
                await admin.put(name, each, password)

        _run(Cluster(bootstrap, setting, command_config, timeout), put)


@users.command("delete", short_help="Delete a user.")
def delete(
    name: Name,
    mechanism: Mechanisms = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Delete a user's credentials. Open connections stay open."""
    with failures_in_one_line():
        chosen = _chosen(mechanism)

        async def remove(admin: Users) -> None:
            has = {user.name: user.mechanisms for user in await admin.list()}.get(name, {})
            wanted = [each for each in chosen if each in has]
            if not wanted:
                raise CommandFailed(f"there is no user {name} with {' or '.join(chosen)}")
            for each in wanted:
                await admin.delete(name, each)

        _run(Cluster(bootstrap, setting, command_config, timeout), remove)


def _chosen(mechanisms: list[str] | None) -> list[str]:
    for each in mechanisms or ():
        if each not in _MECHANISMS:
            raise UsageFailed(f"--mechanism {each}: unknown; allowed: {', '.join(_MECHANISMS)}")
    return mechanisms or list(_MECHANISMS)


def _password(name: str) -> str:
    if sys.stdin.isatty():
        password = typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise CommandFailed("an empty password; give one at the prompt, or by a pipe")
    return str(password)


def _run(cluster: Cluster, act: Callable[[Users], Coroutine[object, None, Value]]) -> Value:
    from sharecore.admin.users import Users

    return administered(Users, cluster, act)
