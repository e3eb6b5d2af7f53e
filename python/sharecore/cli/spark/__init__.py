"""`sharecore spark`: jobs over share groups that run on Spark."""

from __future__ import annotations

import click
import typer
from typer.core import TyperGroup

from sharecore.cli.typers import commands


class _Later(TyperGroup):
    """Has its commands made when one of them is wanted: a broker that starts need not wait for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._make()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._make()
        return super().get_command(ctx, cmd_name)

    def _make(self) -> None:
        if not self.commands:
            from sharecore.cli.spark.commands import jobs

            self.commands.update(typer.main.get_group(jobs).commands)


spark = commands(
    "Run Spark jobs over share groups, on this machine or on a cluster with --master.",
    cls=_Later,
)


@spark.callback()
def options() -> None:
    """Run Spark jobs over share groups, on this machine or on a cluster with --master."""
