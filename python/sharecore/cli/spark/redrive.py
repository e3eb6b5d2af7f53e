"""`sharecore spark redrive`: rejected and given-up records, produced again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed, UsageFailed
from sharecore.cli.dlq.options import Filter, Headers, Key, Since, Until, wanted_of
from sharecore.cli.spark.common import (
    AnyGroup,
    Master,
    Out,
    ReportFile,
    Timeout,
    Topics,
    connection,
    failures,
    session,
    write_report,
)
from sharecore.cli.spark.redrive_source import History, Letters, Row
from sharecore.cli.tables import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def redrive(
    group: AnyGroup = None,
    dead_letters: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(metavar="TOPIC", help="Read this dead-letter topic instead of the group's history."),
    ] = None,
    topic: Topics = None,
    outcome: Annotated[
        str,
        typer.Option(
            metavar="rejected|exhausted|all",
            help="rejected: by a consumer; exhausted: archived at the delivery limit.",
        ),
    ] = "all",
    since: Since = None,
    until: Until = None,
    key: Key = None,
    pattern: Filter = None,
    header: Headers = None,
    to_topic: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="TOPIC", help="Partition to write to.  [default: back to their topic]"),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Apply the change; without this option it is only shown.")
    ] = False,
    out: Out = None,
    report: ReportFile = None,
    master: Master = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Produce again the records that a group rejected or archived, as far as the history of its state
    covers them.

    \b
    sharecore spark redrive --group orders --out redriven                the plan
    sharecore spark redrive --group orders --out redriven --execute      produces them
    sharecore spark redrive --dead-letters dlq.orders --out redriven     from a dead-letter topic

    Records keep key, value, headers and timestamp, and go to the partition of the same number. Headers name
    their origin: __redrive.topic, .partition, .offset, .group, .delivery.count, and .count (the number of
    redrives).

    With --dead-letters the records come from a dead-letter topic, for all groups or one; --since, --until,
    --key, --filter and --header select among them. If a dead-letter record carries no copy, the original is
    read from its topic. Copies do not include the original timestamp.

    Each record is produced at least once. DIR/redriven (for dead-letter records DIR/redriven-letters),
    Parquet with a row per record, lists what was produced: the next run with the same --out skips those. An
    interrupted run or a task that Spark retries may produce records twice, with the same headers.

    All groups that read the target topic get the records, not only this group.
    """
    with failures():
        from sharecore.jobs.delivery import check_producer
        from sharecore.jobs.output import report_path
        from sharecore.jobs.redrivable import ALL, OUTCOMES

        if outcome not in OUTCOMES:
            raise UsageFailed(f"--outcome {outcome}: must be one of {', '.join(OUTCOMES)}")
        if execute and out is None:
            raise CommandFailed(
                "--execute needs --out DIR: what is done is remembered there, and not done twice"
            )
        settings = connection(Cluster(bootstrap, setting, command_config, timeout))
        html = report_path(out, report)
        source: Letters | History
        if dead_letters is not None:
            cause = None if outcome == ALL else outcome
            wanted = wanted_of(group, cause, since, until, None, key, pattern, header)
            source = Letters(settings, dead_letters, wanted, topic or [], to_topic)
        elif group is None:
            raise UsageFailed("use --group GROUP or --dead-letters TOPIC")
        elif (since, until, key, pattern, header) != (None,) * 5:
            raise CommandFailed(
                "--since, --until, --key, --filter and --header choose letters: "
                "--dead-letters TOPIC is needed"
            )
        else:
            source = History(settings, group, topic or [], outcome, to_topic)
        if execute:
            check_producer()
        with session("redrive", master) as spark:
            rows = source.plan(spark, out)
            _show(rows, source.nothing, to_topic)
            total = sum(row["rejected"] + row["exhausted"] for row in rows)
            moved: list[Row] = []
            if execute and out is not None and total:
                moved = _remembered(spark, source.redrive(spark, rows), source.memory(out))
                produced = sum(row["records"] for row in moved)
                typer.echo(
                    f"\n{produced:,} records produced; {total - produced:,} offsets hold none any more"
                )
            elif total:
                typer.echo("\nnothing was produced yet: --execute does it")
        from sharecore.jobs.redrive_report import redrive_report

        facts = {
            "cluster": settings["bootstrap.servers"],
            **source.facts,
            "outcome": outcome,
            "to": to_topic or "the topics that they came from",
            "executed": execute,
        }
        write_report(redrive_report(rows, moved, facts), html)


def _show(rows: list[Row], nothing: str, to_topic: str | None) -> None:
    if not rows:
        typer.echo(nothing)
        return
    show(
        ["PARTITION", "TO", "REJECTED", "EXHAUSTED", "DONE BEFORE"],
        [
            [
                f"{row['topic']}-{row['partition']}",
                to_topic or row["topic"],
                *(f"{row[name]:,}" for name in ("rejected", "exhausted", "done")),
            ]
            for row in rows
        ],
    )


def _remembered(spark: SparkSession, produced: DataFrame, path: str) -> list[Row]:
    """Produce the records, save their results, and return a summary."""
    import uuid

    from pyspark.sql import functions as F

    from sharecore.jobs.progress import progress

    run = str(uuid.uuid4())
    with progress(spark.sparkContext, "redriving"):
        # written where they are produced: evaluated once, and recorded only when everything is done
        produced.withColumn("run", F.lit(run)).write.mode("append").parquet(path)
        grouped = (
            spark.read.parquet(path)
            .where(F.col("run") == run)
            .groupBy("topic", "topicPartition", "toTopic", "toPartition")
            .agg(
                F.count("*").alias("records"),
                F.min("toOffset").alias("first"),
                F.max("toOffset").alias("last"),
            )
        )
        return [row.asDict() for row in grouped.orderBy("topic", "topicPartition").collect()]
