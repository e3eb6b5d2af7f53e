"""How the commands' help is printed."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click
import typer
from typer.core import TyperGroup

HELP_OPTIONS = ["-h", "--help"]
CONTEXT: dict[str, object] = {"help_option_names": HELP_OPTIONS, "max_content_width": 100}


class Options(TypedDict, total=False):
    """Options of a group of commands, as in `typer.Typer`."""

    name: str
    cls: type[TyperGroup]
    no_args_is_help: bool
    add_completion: bool
    pretty_exceptions_enable: bool


def commands(help: str, **more: Unpack[Options]) -> typer.Typer:
    """Return a group of commands, which by itself prints its help, without rich: that takes long to
    import.
    """
    options: Options = {"no_args_is_help": True, **more}
    made = typer.Typer(help=help, rich_markup_mode=None, context_settings=CONTEXT, **options)
    # click suggests the closest command from 8.4 on, and Typer would append the same again
    made.suggest_commands = not hasattr(click.exceptions, "NoSuchCommand")
    return made
