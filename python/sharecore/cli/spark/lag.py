"""`sharecore spark lag`: how far share groups are behind, and how old the oldest record is that waits."""

from __future__ import annotations

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile
from sharecore.cli.clients import BOOTSTRAP, Bootstrap
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

_SHOWN = {
    "startOffset": "START",
    "logEndOffset": "END",
    "lag": "LAG",
    "redelivered": "REDELIVERED",
    "lagWithoutRedelivered": "WITHOUT THEM",
    "lagBytes": "BYTES",
}


def lag(
    group: AnyGroup = None,
    topic: Topics = None,
    out: Out = None,
    report: ReportFile = None,
    overwrite: Overwrite = False,
    master: Master = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Show the lag of share groups in each partition, and the age of the oldest waiting record.

    \b
    sharecore spark lag --group orders --out lag

    \b
    START         start offset: all earlier records are done; -: the group has not started
    END           the end of the log
    LAG           records from START to END that are not done
    REDELIVERED   those that were delivered, not acknowledged, and wait for redelivery
    WITHOUT THEM  LAG without REDELIVERED
    BYTES         of LAG, estimated from the partition's mean record size
    AGE           of the oldest record in LAG, by its timestamp

    It reads persisted state, which does not include acquired records. --out writes DIR/lag, Parquet with a
    row per share partition.
    """
    with failures():
        from sharecore.jobs.cluster import check_group
        from sharecore.jobs.output import parquet_path, report_path

        settings = connection(Cluster(bootstrap, setting, command_config, timeout))
        html = report_path(out, report)
        parquet = None if out is None else parquet_path(out, "lag", overwrite=overwrite)
        if group is not None:
            check_group(settings, group)
        with session("lag", master) as spark:
            from sharecore.jobs import lag as job

            frame = job.lag(spark, settings, group=group, topics=topic or ())
            rows = collect(spark, frame, "reading state", parquet)
        rows.sort(key=lambda row: (row["group"], row["topic"] or "", row["partition"]))
        from sharecore.jobs.charts import number
        from sharecore.jobs.lag_report import age, lag_report, place

        if not rows:
            typer.echo("no share partition has state" + (f" in group {group}" if group else ""))
        else:
            show(
                ["GROUP", "PARTITION", *_SHOWN.values(), "AGE"],
                [
                    [
                        row["group"],
                        place(row),
                        *("-" if row[name] is None else number(row[name]) for name in _SHOWN),
                        age(row["ageMs"]),
                    ]
                    for row in rows
                ],
            )
        facts = {
            "cluster": settings["bootstrap.servers"],
            "group": group or "all",
            "topics": ", ".join(topic or []) or "all",
        }
        write_report(lag_report(rows, facts), html)
