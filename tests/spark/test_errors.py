"""What a user is told, word for word where it matters, and that it says what to do."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from tests.harness.broker import free_port
from tests.harness.clients import configure_group, create_topic, produce
from tests.harness.secured import PASSWORD, USER, SecuredBroker
from tests.spark.conftest import Topic

import sharecore
from sharecore.spark import register

pytestmark = pytest.mark.timeout(300)
NEEDED = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", "group.id": "g"}


def failure(rows: DataFrame, checkpoint: Path) -> str:
    """What a query ends with."""
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    with pytest.raises(StreamingQueryException) as caught:
        writer.trigger(availableNow=True).start().awaitTermination()
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": ""}, "subscribe is missing: the topics to read"),
        ({"group.id": ""}, "group.id is missing: the share group"),
        ({"includeHeaders": "maybe"}, "includeHeaders='maybe': must be true or false"),
        ({"maxOffsetsPerTrigger": "9"}, "no option of format sharegroup; did you mean maxRecordsPerTrigger?"),
        ({"kafka.sasl.pasword": "x"}, "did you mean sasl.password?"),
        ({"startingOffsets": "first"}, "must be earliest, latest or by_duration:PT1H"),
    ],
)
def test_wrong_options(spark: SparkSession, options: dict[str, str], message: str) -> None:
    with pytest.raises(AnalysisException, match=re.escape(message)):
        spark.readStream.format("sharegroup").options(**NEEDED | options).load()


def test_a_schema_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("sharegroup").options(**NEEDED).schema("value string").load()
    assert "leave schema() out, select from them" in failure(rows, tmp_path)


def test_a_batch_of_what_is_a_stream(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"use spark.readStream, with trigger\(availableNow=True\)"):
        spark.read.format("sharegroup").options(**NEEDED).load().collect()


def python_without(name: str, home: Path) -> Path:
    """Return a Python that has everything that this one has, but for one package."""
    packages = home / "packages"
    packages.mkdir()
    places = [Path(each) for each in site.getsitepackages()] + [Path(sharecore.__file__).parents[1]]
    for each in (each for place in places for each in place.iterdir()):
        if each.name != name and not (packages / each.name).exists():
            (packages / each.name).symlink_to(each)
    python = home / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.parametrize("name", ["pyarrow", "pyspark"])
def test_a_package_that_is_missing(tmp_path: Path, name: str) -> None:
    python = python_without(name, tmp_path)
    command = [str(python), "-c", "from sharecore.spark import register"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert f"No module named '{name}" in done.stderr
    assert 'pip install "sharecore[spark]"' in done.stderr


@pytest.mark.parametrize("name", ["pyarrow", "sharecore", "python"])
def test_workers_that_cannot(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    python = python_without(name, tmp_path)
    if name == "python":
        python.unlink()
    # Spark stores PYSPARK_PYTHON here when it starts
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with pytest.raises(
        RuntimeError, match=rf"{python}, which cannot import sharecore.spark: .*{name}"
    ) as told:
        register(spark)
    assert "Set PYSPARK_PYTHON to a Python with" in str(told.value)


def test_a_broker_that_does_not_answer(topic: Topic, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    rows = topic.read(kafka_bootstrap_servers=address, kafka_default_api_timeout_ms="2000")
    assert f"no broker answers at kafka.bootstrap.servers={address}" in failure(rows, tmp_path)


def test_a_topic_that_is_not_there(topic: Topic, tmp_path: Path) -> None:
    told = failure(topic.read(subscribe="nothing-of-that-name"), tmp_path)
    assert "create the topic first, or correct the option subscribe" in told


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker that asks who one is; two topics and two groups, of which the worker may use one each."""
    broker = SecuredBroker(tmp_path_factory.mktemp("safe"))
    broker.start()
    for topic in ("ours", "theirs"):
        create_topic(broker.inside, topic)
        configure_group(broker.inside, topic, share_auto_offset_reset="earliest")
    produce(broker.inside, "ours", [b"a", b"b"])
    broker.keep_for("User:owner", ResourceType.TOPIC, "theirs")
    broker.keep_for("User:owner", ResourceType.GROUP, "theirs")
    yield broker
    broker.kill()


def read_safely(spark: SparkSession, broker: SecuredBroker, home: Path, **options: str) -> DataFrame:
    """Return the stream, with settings as a user of Spark's Kafka source has them."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = {
        "kafka.bootstrap.servers": broker.client["bootstrap.servers"],
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{PASSWORD}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": broker.client["ssl.ca.location"],
        "subscribe": "ours",
        "group.id": "ours",
        "checkpointLocation": str(home),
    }
    given = {name: value for name, value in (settings | options).items() if value}
    return spark.readStream.format("sharegroup").options(**given).load()


def test_tls_and_sasl_as_sparks_kafka_source_has_them_set(
    spark: SparkSession, safe: SecuredBroker, tmp_path: Path
) -> None:
    found: list[Row] = []
    writer = read_safely(spark, safe, tmp_path).writeStream.option("checkpointLocation", str(tmp_path))
    query = writer.foreachBatch(lambda batch, _number: found.extend(batch.collect()))
    query.trigger(availableNow=True).start().awaitTermination()
    assert [bytes(row.value) for row in found] == [b"a", b"b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group.id": "theirs"}, "the user may not read group theirs: grant READ on the group"),
        ({"group.id": "theirs", "startingOffsets": "latest"}, "grant ALTER_CONFIGS on the group"),
        ({"subscribe": "theirs"}, "the user may not read theirs: grant READ on each topic"),
        ({"kafka.sasl.jaas.config": 'ScramLoginModule required username="u" password="p";'}, "kafka.sasl."),
        ({"kafka.ssl.truststore.location": ""}, "do not accept each other"),
        ({"kafka.ssl.truststore.location": os.devnull}, "ssl.ca.location='/dev/null' cannot be loaded"),
    ],
)
def test_a_broker_that_refuses(
    spark: SparkSession, safe: SecuredBroker, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    assert message in failure(read_safely(spark, safe, tmp_path, **options), tmp_path)
