"""A query in a process of its own, which may kill its JVM between the write of a batch and the commit.

python -m tests.spark.job BOOTSTRAP TOPIC GROUP CHECKPOINT HOME KILL_AT
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tests.spark.sinks import Sinks

from sharecore.spark import register


def main() -> None:
    bootstrap, topic, group, checkpoint, home, kill_at = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", home)
        .getOrCreate()
    )
    register(session)
    sinks = Sinks(Path(home))
    jvm = session.sparkContext._jvm
    assert jvm is not None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def take(batch: DataFrame, number: int) -> None:
        sinks.write(batch, number)
        if number == int(kill_at):
            os.kill(pid, signal.SIGKILL)
            time.sleep(60)

    reader = session.readStream.format("sharegroup").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "group.id": group,
            "startingOffsets": "earliest",
            "checkpointLocation": checkpoint,
            "maxRecordsPerTrigger": "500",
        }
    )
    writer = reader.load().writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
