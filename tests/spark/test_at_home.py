"""Both sources and a job over TLS and SASL, with the settings that every other client here takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from tests.harness.clients import configure_group, create_topic, produce, settle, share_consumer
from tests.harness.listeners import Listeners
from typer.testing import CliRunner

from sharecore.cli.app import app

pytestmark = pytest.mark.timeout(300)
TOPIC = "home"
CASES = [
    ("SSL", None, ""),
    ("SASL_SSL", "PLAIN", ""),
    ("SASL_SSL", "SCRAM-SHA-512", ""),
    ("SASL_SSL", "SCRAM-SHA-256", "java"),
    ("SASL_SSL", "OAUTHBEARER", ""),
]
"""Protocol, mechanism, and whose names the settings have: librdkafka's, or those of Java's clients."""


@pytest.fixture(scope="module", params=["sharecore", "apache"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    listeners = Listeners(tmp_path_factory.mktemp(request.param), request.param)
    listeners.start()
    create_topic(listeners.address("PLAINTEXT"), TOPIC)
    produce(listeners.address("PLAINTEXT"), TOPIC, [b"a", b"b"])
    yield listeners
    listeners.kill()


def settings_of(home: Listeners, protocol: str, mechanism: str | None, names: str) -> dict[str, str]:
    if names == "java":
        assert mechanism is not None
        return home.java_client(protocol, mechanism)
    return home.client(protocol, mechanism)


@pytest.mark.parametrize(("protocol", "mechanism", "names"), CASES)
def test_records_of_a_group_and_the_state_that_they_leave(
    spark: SparkSession, home: Listeners, tmp_path: Path, protocol: str, mechanism: str | None, names: str
) -> None:
    settings = {
        f"kafka.{name}": value for name, value in settings_of(home, protocol, mechanism, names).items()
    }
    group = f"{protocol}-{mechanism}"
    configure_group(home.address("PLAINTEXT"), group, share_auto_offset_reset="earliest")
    found: list[Row] = []
    options = settings | {"subscribe": TOPIC, "group.id": group, "checkpointLocation": str(tmp_path)}
    writer = spark.readStream.format("sharegroup").options(**options).load().writeStream
    query = writer.option("checkpointLocation", str(tmp_path)).foreachBatch(
        lambda batch, _number: found.extend(batch.collect())
    )
    query.trigger(availableNow=True).start().awaitTermination()
    assert [bytes(row.value) for row in found] == [b"a", b"b"]

    view = {"group.id": group, "view": "live"}
    (state,) = spark.read.format("sharestate").options(**settings, **view).load().collect()
    settled = [tuple(batch)[:3] for batch in state.stateBatches]
    # Apache Kafka leaves the start offset until it writes for another reason
    assert (state.group, state.topic) == (group, TOPIC)
    assert (state.startOffset, settled) in [(2, []), (0, [(0, 1, 2)])]


def test_a_job_with_a_file_of_settings(spark: SparkSession, home: Listeners, tmp_path: Path) -> None:
    settings = home.client("SASL_SSL", "SCRAM-SHA-512")
    bootstrap = settings.pop("bootstrap.servers")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    group, inside = "lagging", home.address("PLAINTEXT")
    configure_group(inside, group, share_auto_offset_reset="earliest")
    with share_consumer(inside, group, [TOPIC]) as consumer:
        settle(consumer, 2)
    arguments = ["spark", "lag", "--group", group, "-b", bootstrap, "--command-config", str(file)]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    name, partition, _, end, lag, *_ = ended.stdout.splitlines()[1].split()
    assert (name, partition, end, lag) == (group, f"{TOPIC}-0", "2", "0")
