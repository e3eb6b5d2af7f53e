"""The Spark session of a job."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

LOCAL = "local[*]"
_LOGGING = Path(__file__).with_name("log4j2.properties")


@contextmanager
def session(name: str, master: str | None = None) -> Iterator[SparkSession]:
    """Yield a Spark session, which ends with the block unless it existed before.

    Args:
        name: of the application, as Spark's pages show it.
        master: such as `spark://host:7077`; None for `local[*]`, or the master of spark-submit.

    Raises:
        RuntimeError: Spark's workers run a Python that lacks sharecore.
    """
    before = SparkSession.getActiveSession()
    if before is not None:
        _register(before)
        yield before
        return
    # a worker must run the Python that has sharecore; on a cluster this variable names it
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it
        builder = (
            builder.master(master or LOCAL)
            .config("spark.ui.enabled", "false")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
        )
    elif master is not None:
        builder = builder.master(master)
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        _register(spark)
        yield spark
    finally:
        spark.stop()


def _register(spark: SparkSession) -> None:
    from sharecore.spark import ShareStateSource, register

    if spark.sparkContext.pythonExec == sys.executable and spark.sparkContext.master.startswith("local"):
        # this Python has everything required, and starting it again to check takes a second
        spark.dataSource.register(ShareStateSource)
    else:
        register(spark)
