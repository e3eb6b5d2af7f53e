"""What the jobs have in common on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from sharecore.cli.admin import Cluster, timeout_option
from sharecore.cli.clients import CommandFailed, ctrl_c_ends, failures_in_one_line

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from sharecore.jobs.report import Report

API_TIMEOUT_MS = 20_000

Timeout = Annotated[Optional[float], timeout_option(API_TIMEOUT_MS)]  # noqa: UP045 - typer evaluates it
Master = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        metavar="URL", help="Where Spark runs, such as spark://host:7077.  [default: local[*], this machine]"
    ),
]
Topics = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--topic", metavar="TOPIC", help="Only this topic; may be repeated."),
]
AnyGroup = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--group", "-g", metavar="GROUP", help="Only this share group."),
]
Group = Annotated[str, typer.Option("--group", "-g", metavar="GROUP", help="The share group.")]
Out = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="DIR", help="Write Parquet and the report here."),
]
ReportFile = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--report", metavar="FILE.html", help="Write the report here.  [default: DIR/report.html]"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files in --out.")]

_EXTRA = 'pip install "sharecore[spark]"'


@contextmanager
def failures() -> Iterator[None]:
    """End the program with one line if a job cannot run."""
    with failures_in_one_line(), ctrl_c_ends():
        _check_extra()
        from pyspark.errors import PySparkException

        from sharecore.errors import ConfigError, KafkaError

        try:
            yield
        except (ConfigError, KafkaError, OSError, RuntimeError) as error:
            raise CommandFailed(str(error)) from None
        except PySparkException as error:
            raise CommandFailed(cause(str(error))) from None


@contextmanager
def session(name: str, master: str | None) -> Iterator[SparkSession]:
    """Yield a Spark session for a job, named `sharecore spark NAME`."""
    from sharecore.jobs import session as sessions

    try:
        with sessions.session(f"sharecore spark {name}", master) as spark:
            yield spark
    except Exception as error:
        # JVM exceptions have no common class: they are py4j's, or pyspark's without a hierarchy
        if type(error).__module__.startswith("py4j"):
            raise CommandFailed(cause(str(error))) from None
        raise


def connection(cluster: Cluster) -> dict[str, str]:
    """Return the settings of a client; raises CommandFailed if nobody listens or a setting is invalid."""
    from sharecore.client.settings import read_connection_settings

    chosen = cluster.client_settings(API_TIMEOUT_MS)
    read_connection_settings(chosen)
    cluster.check()
    return chosen


def _check_extra() -> None:
    try:
        for name in ("pyspark", "pyarrow", "pandas"):
            import_module(name)
    except ImportError as error:
        raise CommandFailed(f"the jobs need PySpark ({error}): {_EXTRA}") from None


def cause(text: str) -> str:
    """Return the line of a Spark error that says what went wrong: the last of a Python traceback, or the
    first.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [
        line
        for line in lines
        if line.startswith(("sharecore.errors.", "sharecore.trace.", "RuntimeError: ", "ConfigError: "))
    ]
    found = errors[-1] if errors else lines[0] if lines else "Spark gave no reason"
    name, colon, rest = found.partition(": ")
    return rest if colon and name.replace(".", "").isalnum() and name.endswith("Error") else found


def collect(spark: SparkSession, frame: DataFrame, what: str, parquet: str | None) -> list[dict[str, Any]]:
    """All rows of a frame, which are few, by way of Parquet where that is wanted; with a progress bar."""
    from sharecore.jobs.progress import progress

    with progress(spark.sparkContext, what):
        if parquet is not None:
            frame.write.parquet(parquet)
            frame = spark.read.parquet(parquet)
        rows = [row.asDict(recursive=True) for row in frame.collect()]
    if parquet is not None:
        typer.echo(f"rows: {parquet}", err=True)
    return rows


def write_report(report: Report, path: Path | None) -> None:
    """Write a report where it was asked for, and say where it is."""
    if path is not None:
        report.write(path)
        typer.echo(f"report: {path}")
