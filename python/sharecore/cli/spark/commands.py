"""The commands of `sharecore spark`."""

from __future__ import annotations

import typer

from sharecore.cli.spark.audit import audit
from sharecore.cli.spark.lag import lag
from sharecore.cli.spark.poison import poison
from sharecore.cli.spark.redrive import redrive
from sharecore.cli.spark.simulate import simulate

jobs = typer.Typer(rich_markup_mode=None)
jobs.command("lag", short_help="Show how far groups are behind, and how old what waits is.")(lag)
jobs.command("poison", short_help="Show the records that were delivered nearly as often as may be.")(poison)
jobs.command("audit", short_help="Look for what must not be in the history of share state.")(audit)
jobs.command("redrive", short_help="Produce rejected and given-up records again.")(redrive)
jobs.command("simulate", short_help="Simulate a share partition under load, or replay traces.")(simulate)
