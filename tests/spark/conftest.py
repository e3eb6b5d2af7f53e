"""A Spark session, a broker and queries between them. `make spark` runs these tests."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import create_topic

KIND = os.environ.get("BROKER", "sharecore")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"), KIND, QUICK_GROUPS)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from sharecore.spark import register

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2, 4]")  # a task may fail three times
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


class Topic:
    """A new topic, and queries over it in a group of their own."""

    def __init__(self, broker: Broker, spark: SparkSession, checkpoint: Path, partitions: int) -> None:
        number = next(_numbers)
        self.name, self.group = f"topic-{number}", f"group-{number}"
        self.broker, self._spark = broker, spark
        self.checkpoint = str(checkpoint / f"checkpoint-{number}")
        create_topic(broker.bootstrap, self.name, partitions)
        self.partitions = partitions
        self._sent = 0

    def send(self, count: int) -> list[bytes]:
        """Sends records over all partitions in turn; returns their values."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        values = [b"%08d" % number for number in range(self._sent, self._sent + count)]
        for number, value in enumerate(values):
            producer.produce(self.name, value, partition=number % self.partitions)
        assert producer.flush(60) == 0
        self._sent += count
        return values

    def options(self, **more: str) -> dict[str, str]:
        """Return the source's options; `_` in a name of `more` stands for a dot."""
        return {
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "subscribe": self.name,
            "group.id": self.group,
            "startingOffsets": "earliest",
            "checkpointLocation": self.checkpoint,
        } | {name.replace("_", "."): value for name, value in more.items()}

    def read(self, **options: str) -> DataFrame:
        """Return the stream; `_` in an option's name stands for a dot."""
        return self._spark.readStream.format("sharegroup").options(**self.options(**options)).load()


@pytest.fixture
def topic(broker: Broker, spark: SparkSession, tmp_path: Path) -> Topic:
    """Return a new topic with three partitions."""
    return Topic(broker, spark, tmp_path, 3)
