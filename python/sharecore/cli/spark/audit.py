"""`sharecore spark audit`: check the history of share state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile
from sharecore.cli.clients import BootstrapOrDirectory, CommandFailed, check_one_source, usual_bootstrap
from sharecore.cli.spark.common import (
    AnyGroup,
    Master,
    Out,
    Overwrite,
    ReportFile,
    Timeout,
    Topics,
    collect,
    connection,
    failures,
    session,
    write_report,
)
from sharecore.cli.tables import show

_SHOWN_MAX = 50


def audit(
    group: AnyGroup = None,
    topic: Topics = None,
    data_dir: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            metavar="DIR",
            help="Read a data directory of sharecore or a log directory of Apache Kafka instead.",
        ),
    ] = None,
    out: Out = None,
    report: ReportFile = None,
    overwrite: Overwrite = False,
    master: Master = None,
    bootstrap: BootstrapOrDirectory = "",
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Check the history of share state for inconsistencies.

    \b
    sharecore spark audit --out audit
    sharecore spark audit --data-dir ./data --group orders

    Each record of __share_group_state is compared with the ones before it: start offsets and epochs that
    decrease, delivery counts that fall, done records that change, batches that overlap or lie below the start
    offset, incomplete snapshots. --out writes DIR/findings, Parquet with a row per finding.

    Exit status: 0 no error was found (there may be warnings), 1 an error was found, or the state cannot be
    read.
    """
    with failures():
        from sharecore.jobs.output import parquet_path, report_path

        check_one_source(data_dir, bootstrap)
        if data_dir is not None and not data_dir.is_dir():
            raise CommandFailed(f"--data-dir {data_dir}: no such directory")
        settings = (
            {}
            if data_dir
            else connection(Cluster(bootstrap or usual_bootstrap(), setting, command_config, timeout))
        )
        html = report_path(out, report)
        parquet = None if out is None else parquet_path(out, "findings", overwrite=overwrite)
        if group is not None and data_dir is None:
            from sharecore.jobs.cluster import check_group

            check_group(settings, group)
        with session("audit", master) as spark:
            from sharecore.jobs.audit import counted, findings
            from sharecore.jobs.state import read_state

            history = read_state(
                spark,
                settings,
                "history",
                path=None if data_dir is None else str(data_dir),
                group=group,
                topics=topic or (),
                mode="PERMISSIVE",
            ).cache()
            found = collect(spark, findings(history), "auditing", parquet)
            counts = [row.asDict() for row in counted(history).collect()]
        from sharecore.jobs.audit_report import audit_report, place

        found.sort(key=lambda row: (row["severity"], row["partition"], row["offset"]))
        if found:
            show(
                ["SEVERITY", "RULE", "GROUP", "PARTITION", "RECORD", "EXPLANATION"],
                [
                    [
                        row["severity"],
                        row["rule"],
                        row["group"] or "-",
                        place(row) if row["topicId"] else "-",
                        f"{row['partition']}:{row['offset']}",
                        row["explanation"],
                    ]
                    for row in found[:_SHOWN_MAX]
                ],
            )
            if len(found) > _SHOWN_MAX:
                typer.echo(f"and {len(found) - _SHOWN_MAX:,} more")
            typer.echo()
        errors = sum(row["severity"] == "error" for row in found)
        records = sum(row["snapshots"] + row["updates"] + row["tombstones"] for row in counts)
        typer.echo(
            f"{records:,} records about {len(counts):,} share partitions: {errors:,} errors, "
            f"{len(found) - errors:,} warnings"
        )
        where = str(data_dir) if data_dir is not None else settings["bootstrap.servers"]
        facts = {"state of": where, "group": group or "all", "topics": ", ".join(topic or []) or "all"}
        write_report(audit_report(found, counts, facts), html)
    if errors:
        raise typer.Exit(1)
