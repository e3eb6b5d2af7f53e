"""The program `sharecore` and its commands."""

from __future__ import annotations

import sys

import typer

from sharecore.cli.acls import acls
from sharecore.cli.certs import certs
from sharecore.cli.config import config
from sharecore.cli.consume import consume
from sharecore.cli.dashboard import dashboard
from sharecore.cli.dlq import dlq
from sharecore.cli.doctor import doctor
from sharecore.cli.export_metrics import export_metrics
from sharecore.cli.groups import groups
from sharecore.cli.produce import produce
from sharecore.cli.serve import serve
from sharecore.cli.spark import spark
from sharecore.cli.state import state
from sharecore.cli.store import store
from sharecore.cli.top.command import top
from sharecore.cli.typers import CONTEXT
from sharecore.cli.users import users
from sharecore.cli.work import work

# rich would take longer to import than the broker takes to start
app = typer.Typer(
    name="sharecore",
    help="Kafka share groups (KIP-932) without the JVM.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)
app.command("serve", short_help="Run a broker.")(serve)
app.command("produce", short_help="Write records to a topic.")(produce)
app.command("consume", short_help="Take records as a member of a share group.")(consume)
app.command("work", short_help="Run a worker on the records of a topic.")(work)
app.command("export-metrics", short_help="Serve share groups of any cluster to Prometheus.")(export_metrics)
app.command("doctor", short_help="Say what is wrong, and what to do.")(doctor)
app.command("top", short_help="Watch share groups on a terminal.")(top)
app.command("dashboard", short_help="Serve a page of share groups to browsers.")(dashboard)
app.command("certs", short_help="Make certificates for development.")(certs)
app.add_typer(config, name="config", short_help="Settings of the broker: example, check, explanations.")
app.add_typer(dlq, name="dlq", short_help="Dead letters: list, show, redrive.")
app.add_typer(groups, name="groups", short_help="List, describe, reset and delete groups.")
app.add_typer(spark, name="spark", short_help="Jobs over share groups, on Spark.")
app.add_typer(state, name="state", short_help="Show what the broker keeps of share groups.")
app.add_typer(store, name="store", short_help="Check a data directory, salvage a damaged one.")
app.add_typer(acls, name="acls", short_help="What is allowed to whom.")
app.add_typer(users, name="users", short_help="Users that say who they are with SCRAM.")


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"sharecore {version('sharecore')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=_version, is_eager=True
    ),
) -> None:
    """Kafka share groups (KIP-932) without the JVM."""


def main() -> None:
    """Runs the program; never returns."""
    sys.exit(app(prog_name="sharecore"))
