"""Makes the formats known to a Spark session."""

from __future__ import annotations

import subprocess

from pyspark.sql import SparkSession

from sharecore.spark.reader import ShareGroupSource
from sharecore.spark.state_reader import ShareStateSource

_CHECK_SECONDS = 60


def register(spark: SparkSession) -> None:
    """Register `format("sharegroup")` and `format("sharestate")`.

    Raises:
        RuntimeError: the Python that Spark starts its workers with cannot read share groups.
    """
    python = spark.sparkContext.pythonExec
    reason = _why_not(python)
    if reason:
        raise RuntimeError(
            f"Spark's workers run {python}, which cannot import sharecore.spark: {reason}. Set "
            'PYSPARK_PYTHON to a Python with "sharecore[spark]" installed, on every node.'
        )
    spark.dataSource.register(ShareGroupSource)
    spark.dataSource.register(ShareStateSource)


def _why_not(python: str) -> str:
    """Return why a Python cannot import this package; empty if it can."""
    command = [python, "-c", "from sharecore.spark import register"]
    try:
        check = subprocess.run(command, capture_output=True, text=True, timeout=_CHECK_SECONDS)
    except OSError as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return f"no answer within {_CHECK_SECONDS} s"
    if check.returncode == 0:
        return ""
    return (check.stderr.strip() or "no reason was given").splitlines()[-1]
