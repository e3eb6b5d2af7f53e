"""The commands of `sharecore spark`."""

from __future__ import annotations

import typer

from sharecore.cli.spark.audit import audit
from sharecore.cli.spark.lag import lag
from sharecore.cli.spark.poison import poison
from sharecore.cli.spark.redrive import redrive
from sharecore.cli.spark.simulate import simulate

jobs = typer.Typer(rich_markup_mode=None)
jobs.command("lag", short_help="Show lag, and the age of the oldest waiting record.")(lag)
jobs.command("poison", short_help="Show records close to their delivery limit.")(poison)
jobs.command("audit", short_help="Check the history of share state for inconsistencies.")(audit)
jobs.command("redrive", short_help="Produce rejected and archived records again.")(redrive)
jobs.command("simulate", short_help="Simulate a share partition under load, or replay traces.")(simulate)
