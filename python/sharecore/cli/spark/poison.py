"""`sharecore spark poison`: the records that a group was given nearly as often as it may."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed
from sharecore.cli.spark.common import (
    Group,
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

_SHOWN_MAX = 20
_VALUE_CHARACTERS = 60


def poison(
    group: Group,
    threshold: Annotated[
        Optional[int],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(min=1, help="Minimum number of deliveries.  [default: limit - 1]"),
    ] = None,
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
    """Show records that wait for redelivery and are close to their delivery limit.

    \b
    sharecore spark poison --group orders --out poison

    The limit is the group's share.delivery.count.limit. Records that reached it are archived: see `sharecore
    spark redrive`. --out writes DIR/records, Parquet with the complete records.
    """
    with failures():
        from sharecore.jobs.cluster import delivery_limit
        from sharecore.jobs.output import parquet_path, report_path

        settings = connection(Cluster(bootstrap, setting, command_config, timeout))
        html = report_path(out, report)
        parquet = None if out is None else parquet_path(out, "records", overwrite=overwrite)
        limit = delivery_limit(settings, group)
        least = limit - 1 if threshold is None else threshold
        if least >= limit:
            raise CommandFailed(
                f"--threshold {least}: a record with {limit} deliveries, the group's limit, is archived; "
                f"at most {limit - 1} makes sense"
            )
        with session("poison", master) as spark:
            from pyspark.sql.functions import desc

            from sharecore.jobs.poison import poison_ranges, poison_records
            from sharecore.jobs.poison_report import SHOWN_MAX, poison_report
            from sharecore.jobs.progress import progress

            ranges = poison_ranges(spark, settings, group, least, topics=topic or ()).cache()
            expected = ranges.agg({"offsets": "sum"}).collect()[0][0] or 0
            frame = poison_records(ranges, settings, group, limit)
            with progress(spark.sparkContext, "reading records"):
                if parquet is not None:
                    frame.write.parquet(parquet)
                    frame = spark.read.parquet(parquet)
                else:
                    frame = frame.cache()
                found = frame.count()
            rows = collect(
                spark,
                frame.orderBy(desc("deliveryCount"), "topic", "partition", "offset").limit(SHOWN_MAX),
                "sorting",
                None,
            )
        facts = {
            "cluster": settings["bootstrap.servers"],
            "group": group,
            "delivery limit": limit,
            "delivered at least": f"{least} times",
            "records": found,
            "gone from the log": expected - found,
        }
        _show(rows, found, expected, group, least)
        write_report(poison_report(rows, found, facts), html)


def _show(rows: list[dict[str, Any]], found: int, expected: int, group: str, least: int) -> None:
    from sharecore.jobs.report import readable

    if not expected:
        typer.echo(f"no record of group {group} was delivered {least} times or more and waits")
        return
    show(
        ["PARTITION", "OFFSET", "DELIVERED", "KEY", "VALUE"],
        [
            [
                f"{row['topic']}-{row['partition']}",
                str(row["offset"]),
                str(row["deliveryCount"]),
                *(
                    "-" if row[name] is None else _cut(readable(bytes(row[name])))
                    for name in ("key", "value")
                ),
            ]
            for row in rows[:_SHOWN_MAX]
        ],
    )
    if found > _SHOWN_MAX:
        typer.echo(f"and {found - _SHOWN_MAX:,} more")
    if found < expected:
        typer.echo(f"{expected - found:,} offsets hold no record any more")


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_CHARACTERS else text[: _VALUE_CHARACTERS - 1] + "…"
