"""`sharecore spark redrive`: rejected and given-up records, produced again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from sharecore.cli.admin import Settings, SettingsFile
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed
from sharecore.cli.spark.common import (
    Group,
    Master,
    Out,
    ReportFile,
    Topics,
    connection,
    failures,
    session,
    write_report,
)
from sharecore.cli.tables import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def redrive(
    group: Group,
    topic: Topics = None,
    outcome: Annotated[
        str,
        typer.Option(
            metavar="rejected|exhausted|all",
            help="rejected by a consumer, exhausted: given up at the delivery limit.",
        ),
    ] = "all",
    to_topic: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(metavar="TOPIC", help="Where the records go.  [default: back to their topic]"),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this, only show it.")] = False,
    out: Out = None,
    report: ReportFile = None,
    master: Master = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
) -> None:
    """Produce again what a group rejected or gave up, as far as the history of its state tells of it.

    \b
    sharecore spark redrive --group orders --out redriven                the plan
    sharecore spark redrive --group orders --out redriven --execute      does it

    Records keep key, value, headers and timestamp, and go to the partition of the same number. Headers tell
    where they were: __redrive.topic, .partition, .offset, .group, .delivery.count, and .count, how often.

    Each record is produced at least once. DIR/redriven, Parquet with a row a record, remembers what was done:
    the next run with the same --out passes over it. A run that breaks off is not remembered, nor is a task
    that Spark runs again: their records may come twice, with the same headers.

    All members of all groups of the target topic are given the records, not only this group's.
    """
    with failures():
        from sharecore.jobs.cluster import delivery_limit
        from sharecore.jobs.output import report_path
        from sharecore.jobs.redrivable import OUTCOMES
        from sharecore.jobs.redrive import check_producer

        if outcome not in OUTCOMES:
            raise CommandFailed(f"--outcome {outcome}: one of {', '.join(OUTCOMES)} is needed")
        if execute and out is None:
            raise CommandFailed(
                "--execute needs --out DIR: what is done is remembered there, and not done twice"
            )
        settings = connection(bootstrap, setting, command_config)
        html = report_path(out, report)
        limit = delivery_limit(settings, group)
        if execute:
            check_producer()
        with session("redrive", master) as spark:
            planned = _plan(spark, settings, group, topic or [], limit, outcome, out)
            rows = _summary(planned)
            _show(rows, group, to_topic)
            total = sum(row["rejected"] + row["exhausted"] for row in rows)
            moved: list[dict[str, Any]] = []
            if execute and out is not None and total:
                moved = _execute(spark, planned, settings, group, to_topic, rows, out)
                produced = sum(row["records"] for row in moved)
                typer.echo(
                    f"\n{produced:,} records produced; {total - produced:,} offsets hold none any more"
                )
            elif total:
                typer.echo("\nnothing was produced yet: --execute does it")
        from sharecore.jobs.redrive_report import redrive_report

        facts = {
            "cluster": bootstrap,
            "group": group,
            "outcome": outcome,
            "to": to_topic or "the topics that they came from",
            "executed": execute,
        }
        write_report(redrive_report(rows, moved, facts), html)


def _plan(
    spark: SparkSession,
    settings: dict[str, str],
    group: str,
    topics: list[str],
    limit: int,
    outcome: str,
    out: str | None,
) -> DataFrame:
    from sharecore.jobs.progress import progress
    from sharecore.jobs.redrive_plan import plan
    from sharecore.jobs.state import read_state

    with progress(spark.sparkContext, "reading history"):
        history = read_state(spark, settings, "history", group=group, topics=topics)
        done = None if out is None else _done(spark, out, group)
        planned = plan(spark, history, limit, outcome=outcome, done=done).where("topic is not null").cache()
        planned.count()
    return planned


def _done(spark: SparkSession, out: str, group: str) -> DataFrame | None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    try:
        return spark.read.parquet(_memory(out)).where(F.col("group") == group)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None


def _memory(out: str) -> str:
    """Where it is kept what was redriven."""
    return f"{out.rstrip('/')}/redriven"


def _summary(planned: DataFrame) -> list[dict[str, Any]]:
    grouped = planned.groupBy("topic", "partition").sum("rejected", "exhausted", "done")
    rows = [row.asDict() for row in grouped.collect()]
    named = [
        {
            "topic": row["topic"],
            "partition": row["partition"],
            **{name: row[f"sum({name})"] for name in ("rejected", "exhausted", "done")},
        }
        for row in rows
    ]
    return sorted(named, key=lambda row: (row["topic"], row["partition"]))


def _show(rows: list[dict[str, Any]], group: str, to_topic: str | None) -> None:
    if not rows:
        typer.echo(f"the history of group {group} tells of no archived record")
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


def _execute(
    spark: SparkSession,
    planned: DataFrame,
    settings: dict[str, str],
    group: str,
    to_topic: str | None,
    rows: list[dict[str, Any]],
    out: str,
) -> list[dict[str, Any]]:
    import uuid

    from pyspark.sql import functions as F

    from sharecore.jobs.cluster import partition_count
    from sharecore.jobs.progress import progress
    from sharecore.jobs.redrive import Target, redrive

    topics = {to_topic} if to_topic is not None else {row["topic"] for row in rows}
    target = Target(group, to_topic, {topic: partition_count(settings, topic) for topic in topics})
    run = str(uuid.uuid4())
    path = _memory(out)
    with progress(spark.sparkContext, "redriving"):
        # written where they are produced: evaluated once, and remembered when all of it is done
        redrive(planned, settings, target).withColumn("run", F.lit(run)).write.mode("append").parquet(path)
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
