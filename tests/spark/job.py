"""A query in a process of its own, as it is handed to spark-submit.

It may kill its JVM between the write of a batch and the commit, and may take its time in the executors, whose
processes leave their ids in HOME/workers.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.sinks import Sinks

from sharecore.spark import register


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "topic", "group", "checkpoint"):
        parser.add_argument(name)
    parser.add_argument("home", type=Path)
    parser.add_argument("--kill-at", type=int, default=-1, help="the number of a batch")
    parser.add_argument("--row-seconds", type=float, default=0.0, help="how long an executor works on a row")
    parser.add_argument("--tasks", type=int, default=1, help="minPartitions")
    return parser.parse_args()


def lingering(rows: DataFrame, home: Path, seconds: float) -> DataFrame:
    """Return the rows, whose executors take their time over each."""
    workers = home / "workers"
    workers.mkdir(exist_ok=True)

    def linger(offset: int) -> int:
        (workers / str(os.getpid())).touch()
        time.sleep(seconds)
        return offset

    return rows.withColumn("offset", F.udf(linger, "bigint")("offset"))


def main() -> None:
    given = arguments()
    session = SparkSession.builder.getOrCreate()
    register(session)
    sinks = Sinks(given.home)
    jvm = session.sparkContext._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def take(batch: DataFrame, number: int) -> None:
        sinks.write(batch, number)
        if number == given.kill_at:
            os.kill(pid, signal.SIGKILL)
            time.sleep(60)

    reader = session.readStream.format("sharegroup").options(
        **{
            "kafka.bootstrap.servers": given.bootstrap,
            "subscribe": given.topic,
            "group.id": given.group,
            "startingOffsets": "earliest",
            "checkpointLocation": given.checkpoint,
            "maxRecordsPerTrigger": "500",
            "minPartitions": str(given.tasks),
        }
    )
    rows = reader.load()
    if given.row_seconds:
        rows = lingering(rows, given.home, given.row_seconds)
    writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", given.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
