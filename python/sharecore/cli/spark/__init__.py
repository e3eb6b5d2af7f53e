"""`sharecore spark`: jobs over share groups that run on Spark."""

from __future__ import annotations

import typer

from sharecore.cli.spark.audit import audit
from sharecore.cli.spark.lag import lag
from sharecore.cli.spark.poison import poison
from sharecore.cli.spark.redrive import redrive
from sharecore.cli.spark.simulate import simulate

spark = typer.Typer(
    help="Jobs over share groups, on Spark: on this machine, or on a cluster with --master.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
spark.command("lag", short_help="Show how far groups are behind, and how old what waits is.")(lag)
spark.command("poison", short_help="Show the records that were delivered nearly as often as may be.")(poison)
spark.command("audit", short_help="Look for what must not be in the history of share state.")(audit)
spark.command("redrive", short_help="Produce rejected and given-up records again.")(redrive)
spark.command("simulate", short_help="Simulate a share partition under load, or replay traces.")(simulate)


@spark.callback()
def options() -> None:
    """Jobs over share groups, on Spark: on this machine, or on a cluster with --master."""
