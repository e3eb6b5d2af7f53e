"""`sharecore doctor`: diagnose a configuration, a data directory or a cluster."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, FileBesideOwn, SettingsBesideOwn, Timeout, run_with
from sharecore.cli.clients import CommandFailed, bootstrap_option, failures_in_one_line
from sharecore.cli.serve import Assignments, gather
from sharecore.cli.tables import Output, print_json

if TYPE_CHECKING:
    from sharecore.admin.doctor import Finding

_MARKS = {"good": "ok  ", "doubt": "warn", "bad": "BAD "}


def doctor(
    config: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            "--config", "-c", metavar="FILE", help="Settings of a broker, as for `sharecore serve`."
        ),
    ] = None,
    settings: Assignments = None,
    data_dir: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DIR", help="A data directory; its broker may be running. Nothing is changed."),
    ] = None,
    bootstrap: Annotated[str, bootstrap_option("A cluster, ours or Apache Kafka's.")] = "",
    bundle: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Write a .tar.gz for a bug report: no secrets, no records."),
    ] = None,
    output: Output = "table",
    setting: SettingsBesideOwn = None,
    command_config: FileBesideOwn = None,
    timeout: Timeout = None,
) -> None:
    """Diagnose a configuration, a data directory or a cluster, and suggest what to do.

    \b
    sharecore doctor --config server.properties               what a broker would start with
    sharecore doctor --data-dir ./data                        a data directory; its broker may be running
    sharecore doctor -b localhost:9092                        share groups that make no progress
    sharecore doctor -c server.properties --data-dir ./data --bundle support.tar.gz

    Without options it checks the environment's settings and ./data. The exit status is 1 if it finds a
    problem.
    """
    from sharecore.admin import doctor as look

    with failures_in_one_line():
        findings: list[Finding] = look.machine()
        properties: dict[str, str] = {}
        if config is not None or settings or not (data_dir or bootstrap):
            from sharecore.errors import ConfigError

            try:
                properties = gather(config, settings or [], environment=os.environ)
            except ConfigError as error:
                raise CommandFailed(str(error)) from None
            findings += look.configuration(properties)
        directory = data_dir or Path(properties.get("log.dirs", properties.get("log.dir", "data")))
        if data_dir is not None or directory.exists():
            findings += look.data_directory(directory)
        if bootstrap:
            try:
                cluster = Cluster(bootstrap, setting, command_config, timeout)
                findings += run_with(cluster, lambda: look.cluster(cluster.client_settings()))
            except CommandFailed as failure:
                findings.append(look.Finding("cluster", "bad", str(failure)))
        if output == "json":
            print_json([asdict(each) for each in findings])
        else:
            _show(findings)
        if bundle is not None:
            try:
                look.write_bundle(bundle, findings, properties, directory)
            except OSError as error:
                raise CommandFailed(f"{bundle}: cannot be written: {error}") from None
            written = f"\n{bundle} is written; it holds no secrets and no records, look before you send it"
            typer.echo(written, err=output == "json")
    if any(each.level == "bad" for each in findings):
        raise typer.Exit(1)


def _show(findings: list[Finding]) -> None:
    for each in findings:
        typer.echo(f"{_MARKS[each.level]}  {each.about}: {each.what}")
        if each.advice:
            typer.echo(f"      {each.advice}")
