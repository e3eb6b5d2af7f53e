"""`sharecore groups pause` and `resume`: whether a share group gets records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Settings, SettingsFile, Timeout, admin_beside
from sharecore.cli.clients import BootstrapOfOne, failures_in_one_line
from sharecore.cli.times import read_duration_ms

if TYPE_CHECKING:
    from sharecore.admin import BlockingAdmin

Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Names of share groups.")]


def pause(
    context: typer.Context,
    group: Groups,
    duration: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            "--for",
            metavar="TIME",
            help="Resume automatically after this time: 90s, 10m, 2h, 1d.",
            show_default=False,
        ),
    ] = None,
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Pause delivery to share groups until they are resumed.

    Members stay in the group and may acknowledge the records they hold; locks expire as usual.
    """
    from sharecore.admin.pausing import Pause

    with failures_in_one_line():
        for_ms = None if duration is None else read_duration_ms(duration, "--for")
    until_ms = None if for_ms is None else round(time.time() * 1000) + for_ms
    wanted = Pause(lasting=until_ms is None, until_ms=until_ms or 0)
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        for name in group:
            admin.pause(name, until_ms=until_ms)
            typer.echo(f"share group {name}: {wanted.describe(0)}{_unless_there(admin, name)}")


def resume(
    context: typer.Context,
    group: Groups,
    timeout: Timeout = None,
    bootstrap: BootstrapOfOne = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Resume delivery to share groups."""
    with admin_beside(context, bootstrap, setting, command_config, timeout) as admin:
        for name in group:
            admin.resume(name)
            typer.echo(f"share group {name}: gets records{_unless_there(admin, name)}")


def _unless_there(admin: BlockingAdmin, name: str) -> str:
    """Return a remark on a group that does not exist: its settings count from its first member on."""
    from sharecore.errors import ErrorCode, KafkaError

    try:
        admin.describe(name)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return "; there is no such group yet"
    return ""
