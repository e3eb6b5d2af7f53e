"""How the commands' help is printed."""

from __future__ import annotations

from typing import Any

import click
import typer

HELP_OPTIONS = ["-h", "--help"]
CONTEXT: dict[str, object] = {"help_option_names": HELP_OPTIONS, "max_content_width": 100}


def commands(help: str, **more: Any) -> typer.Typer:
    """Return a group of commands, which by itself prints its help, without rich: that takes long to
    import.
    """
    given = {"no_args_is_help": True, "rich_markup_mode": None, "context_settings": CONTEXT} | more
    made = typer.Typer(help=help, **given)
    # click suggests the closest command from 8.4 on, and Typer would append the same again
    made.suggest_commands = not hasattr(click.exceptions, "NoSuchCommand")
    return made
