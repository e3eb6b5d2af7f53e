"""The share-group source beside Spark's own Kafka source on the same topics: `make bench-spark`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benches.apache import as_kafka_starts_it
from benches.spark.cpu import tree_cpu_seconds
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic

from sharecore.spark import register

RECORD_BYTES = 100
PARTITIONS = 8
WARM_UP_RECORDS = 100_000
KAFKA_JARS = Path(os.environ.get("SPARK_KAFKA_JARS", "build/jars/spark-kafka"))
BUILT_IN, OURS = "Spark's Kafka source", "sharegroup"


@dataclass(frozen=True)
class Contender:
    """A broker, and how many records of a partition it lets a group hold."""

    kind: str
    window: int
    settings: dict[str, str]


BROKERS = {
    "sharecore": Contender("sharecore", 200_000, {"group.share.max.partition.max.record.locks": "1000000"}),
    # ten thousand is the most that Apache Kafka allows
    "Apache Kafka 4.3.1": Contender(
        "apache", 10_000, {"group.share.max.partition.max.record.locks": "10000"}
    ),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-spark", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="default: %(default)s")
    parser.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    return parser.parse_args()


def session(home: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = ",".join(str(path.resolve()) for path in sorted(KAFKA_JARS.glob("*.jar")))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(home))
        .config("spark.jars", jars)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def produce(bootstrap: str, topic: str, records: int) -> None:
    """Records of 100 bytes, each with a value of its own, over all partitions in turn."""
    create_topic(bootstrap, topic, PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "linger.ms": 50,
            "batch.num.messages": 10_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number in range(records):
        while True:
            try:
                producer.produce(topic, b"%0*d" % (RECORD_BYTES, number), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0


class Figures(NamedTuple):
    """What one query took: rows a second while Spark ran batches, and microseconds of CPU a row."""

    speed: float
    spark_micros: float
    broker_micros: float
    batches: int
    counted: str = ""

    def cells(self) -> tuple[str, ...]:
        spark, broker = f"{self.spark_micros:.1f}", f"{self.broker_micros:.1f}"
        return f"{self.speed:,.0f}", spark, broker, f"{self.batches}", self.counted


class Run:
    """Reads one broker's topics through either source."""

    def __init__(self, spark: SparkSession, broker: Broker, window: int, home: Path) -> None:
        self._spark, self._broker, self._window, self._home = spark, broker, window, home
        self._number = 0
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._jvm = int(jvm.java.lang.ProcessHandle.current().pid())

    def rows(self, source: str, topic: str) -> DataFrame:
        """Return the stream of a topic from its beginning."""
        self._number += 1
        bootstrap = {"kafka.bootstrap.servers": self._broker.bootstrap, "subscribe": topic}
        if source == BUILT_IN:
            reader = self._spark.readStream.format("kafka").options(**bootstrap, startingOffsets="earliest")
            return reader.load()
        group = f"group-{self._number}-{topic}"
        configure_group(
            self._broker.bootstrap,
            group,
            share_auto_offset_reset="earliest",
            share_partition_max_record_locks=self._window,
        )
        return self._spark.readStream.format("sharegroup").options(**bootstrap, **{"group.id": group}).load()

    def measure(self, writer: Any, records: int) -> Figures:
        """One query over everything."""
        self._number += 1
        spark, broker = tree_cpu_seconds(self._jvm), self._broker.cpu_seconds()
        checkpoint = str(self._home / f"checkpoint-{self._number}")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        done = [each for each in query.recentProgress if each["numInputRows"]]
        rows = sum(each["numInputRows"] for each in done)
        assert rows == records, f"{rows} rows of {records}"
        seconds = sum(each["durationMs"]["triggerExecution"] for each in done) / 1000
        return Figures(
            rows / seconds,
            (tree_cpu_seconds(self._jvm) - spark) * 1e6 / rows,
            (self._broker.cpu_seconds() - broker) * 1e6 / rows,
            len(done),
        )

    def noop(self, source: str, topic: str, records: int) -> Figures:
        return self.measure(self.rows(source, topic).writeStream.format("noop"), records)

    def parquet(self, source: str, topic: str, records: int) -> Figures:
        """Into Parquet; what was written is counted, and the different values of it."""
        self._number += 1
        path = str(self._home / f"parquet-{self._number}")
        writer = self.rows(source, topic).writeStream.format("parquet").option("path", path)
        figures = self.measure(writer, records)
        counted = self._spark.read.parquet(path).agg(F.count("*"), F.countDistinct("value")).collect()[0]
        return figures._replace(counted=f"{counted[0]:,}, {counted[1]:,} different")


def main() -> None:
    chosen = options()
    as_kafka_starts_it()
    console = Console(width=max(140, Console().width))
    columns = ("rows/s", "Spark's CPU, µs a row", "the broker's", "batches", "counted")
    table = Table("broker", "sink", "source", *columns, box=box.MARKDOWN)
    bar = (SpinnerColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        Progress(*bar, console=console) as progress,
    ):
        task = progress.add_task("starting Spark", total=len(chosen.brokers) * 7)
        home = Path(scratch)
        spark = session(home)
        for name in chosen.brokers:
            contender = BROKERS[name]
            broker = Broker(home / contender.kind, contender.kind, contender.settings)
            broker.start()
            try:
                run = Run(spark, broker, contender.window, home / f"{contender.kind}-runs")
                produce(broker.bootstrap, "warm-up", WARM_UP_RECORDS)
                produce(broker.bootstrap, "records", chosen.records)
                progress.advance(task)
                for source in (BUILT_IN, OURS):
                    progress.update(task, description=f"{name}: warm-up of {source}")
                    run.parquet(source, "warm-up", WARM_UP_RECORDS)
                    progress.advance(task)
                steps: tuple[tuple[str, Callable[..., Figures]], ...] = (
                    ("noop", run.noop),
                    ("Parquet", run.parquet),
                )
                for sink, step in steps:
                    for source in (BUILT_IN, OURS):
                        progress.update(task, description=f"{name}: {sink}, {source}")
                        cells = step(source, "records", chosen.records).cells()
                        progress.log(f"{name}, {sink}, {source}: {cells[0]} rows/s")
                        table.add_row(name, sink, source, *cells)
                        progress.advance(task)
            finally:
                broker.kill()
        spark.stop()
    console.print(table)


if __name__ == "__main__":
    main()
