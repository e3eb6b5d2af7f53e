"""Groups of commands print their help, asked for or not."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
import typer
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.cli.tier import API_TIMEOUT_MS
from sharecore.cli.typers import HELP_OPTIONS
from sharecore.tier.operation.operator import _DEFAULTS


@pytest.mark.parametrize("name", ["acls", "config", "dlq", "spark", "state", "store", "users"])
def test_a_group_alone_and_a_group_asked_for_help_print_the_same(name: str) -> None:
    asked = [CliRunner().invoke(app, [name, option]) for option in HELP_OPTIONS]
    assert [each.exit_code for each in asked] == [0, 0]
    alone = CliRunner().invoke(app, [name])
    assert {each.output for each in asked} == {alone.output}
    assert f"{name} [OPTIONS] COMMAND" in alone.output


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command of the program by name."""
    program = typer.main.get_command(app)

    def walk(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from walk(f"{words} {name}".strip(), child)
        else:
            yield words, command

    yield from walk("", program)


def spellings(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


CONNECTION = {"--bootstrap-server", "-b", "--config", "-c", "--command-config", "--set", "-s", "-X"}
LACKING = {"tier": {"--command-config"}, "work": {"-X"}}
"""Older spellings that a command never had."""


def test_every_command_that_connects_takes_the_same_options() -> None:
    connecting = {words: command for words, command in commands() if "-b" in spellings(command)}
    assert {"produce", "consume", "groups list", "dlq list", "spark lag", "tier status", "top"} <= {
        *connecting
    }
    for words, command in connecting.items():
        assert CONNECTION - LACKING.get(words.split()[0], set()) <= spellings(command), words


def test_every_command_that_asks_a_cluster_takes_a_timeout() -> None:
    connecting = {words: command for words, command in commands() if "-b" in spellings(command)}
    # a worker and a scheduler wait for their cluster as long as they run
    assert [words for words, each in connecting.items() if "--timeout" not in spellings(each)] == [
        "work",
        "schedules run",
    ]


def test_an_operators_timeout_is_the_one_that_help_names() -> None:
    assert _DEFAULTS["default.api.timeout.ms"] == str(API_TIMEOUT_MS)
