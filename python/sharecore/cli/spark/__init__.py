"""`sharecore spark`: jobs over share groups that run on Spark."""

from __future__ import annotations

import typer

from sharecore.cli.spark.simulate import simulate

spark = typer.Typer(
    help="Jobs over share groups, on Spark: on this machine, or on a cluster with --master.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
spark.command("simulate", short_help="Simulate a share partition under load, or replay traces.")(simulate)


@spark.callback()
def options() -> None:
    """Jobs over share groups, on Spark: on this machine, or on a cluster with --master."""
