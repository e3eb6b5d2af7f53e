"""Completion in the shell: `--install-completion` and `--show-completion`."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

SHELLS = ("bash", "zsh", "fish")
_WIDTH = 10_000
_DETECT = ""
"""The value of an option that is given without one."""


def completion_options() -> list[click.Option]:
    """Return the two options, each with an optional shell name.

    Typer's own take no name where they can find out which shell it is, and pass over one that is given.
    """
    from typer._completion_classes import completion_init
    from typer.completion import install_callback, show_callback

    completion_init()
    if "_SHARECORE_COMPLETE" in os.environ:
        # typer wraps descriptions at this width, and fish offers each line as a word
        os.environ["TERMINAL_WIDTH"] = str(_WIDTH)
    return [
        _option(
            "--install-completion", "Install completion for a shell, by default this one.", install_callback
        ),
        _option("--show-completion", "Print what --install-completion would install.", show_callback),
    ]


def _option(
    name: str, about: str, act: Callable[[click.Context, click.Parameter, str], object]
) -> click.Option:
    def called(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None and not context.resilient_parsing:
            act(context, parameter, _detected(name) if value == _DETECT else value)

    return click.Option(
        [name],
        type=_Shell(),
        is_flag=False,
        flag_value=_DETECT,
        callback=called,
        is_eager=True,
        expose_value=False,
        metavar=f"[{'|'.join(SHELLS)}]",
        help=about,
    )


class _Shell(click.Choice[str]):
    """The name of a shell; empty without one."""

    def __init__(self) -> None:
        super().__init__(SHELLS)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value == _DETECT else super().convert(value, param, ctx)


def _detected(option: str) -> str:
    import shellingham

    try:
        name: str = shellingham.detect_shell()[0]
    except shellingham.ShellDetectionFailure:
        name = "this shell"
    if name not in SHELLS:
        raise click.UsageError(f"{name} is not one of {', '.join(SHELLS)}; name one: {option} bash")
    return name
