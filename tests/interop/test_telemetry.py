"""Clients as they come push their metrics when they are asked; Kafka's tools ask them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.harness import java
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import (
    QUIET,
    configure_group,
    create_topic,
    produce,
    settle,
    share_consumer,
)
from tests.harness.java import TOOLS
from tests.harness.telemetry import Watched, subscribe_all, telemetry_settings

from sharecore.client import ShareConsumer
from sharecore.errors import ErrorCode, KafkaError

SOURCE = java.PROBES / "TelemetryProbe.java"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    port, settings = telemetry_settings()
    broker = Broker(tmp_path_factory.mktemp("watched"), "sharecore", QUICK_GROUPS | settings)
    broker.start()
    subscribe_all(broker.port)
    create_topic(broker.bootstrap, "t")
    yield Watched(broker, port)
    assert broker.terminate() == 0, broker.read_log()[-4000:]


def tool(broker: Broker, *arguments: str) -> str:
    return java.run(f"{TOOLS}.ClientMetricsCommand", "--bootstrap-server", broker.bootstrap, *arguments)


def test_kafkas_tools_manage_subscriptions(watched: Watched) -> None:
    broker = watched.broker
    match = "client_id=my-.*,client_source_address=10.0.0.1"
    tool(broker, "--alter", "--name", "mine", "--metrics", "a.,b.", "--interval", "5000", "--match", match)
    described = tool(broker, "--describe")
    for setting in ("mine", "all", "interval.ms=5000", "metrics=a.,b.", "client_id=my-.*"):
        assert setting in described
    command = (
        *("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap),
        *("--entity-type", "client-metrics", "--entity-name", "mine"),
    )
    java.run(*command, "--alter", "--add-config", "interval.ms=700")
    assert "interval.ms=700" in java.run(*command, "--describe")
    tool(broker, "--delete", "--name", "mine")
    assert tool(broker, "--list").split() == ["all"]


def test_javas_clients_push(watched: Watched) -> None:
    configure_group(watched.bootstrap, "java-group", share_auto_offset_reset="earliest")
    command = java.program(SOURCE, watched.bootstrap, "t", "java-group", libs=java.CLIENT_LIBS)
    plain = "kafka_client_consumer_coordinator_heartbeat_total"
    with java.LineServer(command, errors=subprocess.DEVNULL) as probe:
        ids = dict(probe.receive().split() for _ in range(2))
        watched.until(lambda pushed: plain in pushed.get("java-consumer", ()))
        probe.send("end\n")
    assert set(ids) == {"java-producer", "java-share"}
    pushed = watched.pushed()
    for client, instance_id in ids.items():
        assert {labels["client_instance_id"] for labels in pushed[client].values()} == {instance_id}
    assert "kafka_client_producer_node_request_latency_max" in pushed["java-producer"]
    share = pushed["java-share"]
    for name in (
        "kafka_client_consumer_share_fetch_manager_fetch_total",
        "kafka_client_consumer_share_coordinator_heartbeat_total",
    ):
        assert share[name]["group"] == "java-group", sorted(share)
    assert pushed["java-consumer"][plain]["group"] == "java-group-plain"
    about = {
        sample.labels["client_id"]: sample.labels
        for sample in watched.samples()
        if sample.name == "sharecore_client_info"
    }
    assert about["java-share"]["client_software_name"] == "apache-kafka-java"


def test_librdkafka_pushes(watched: Watched) -> None:
    producer = Producer({"bootstrap.servers": watched.bootstrap, "client.id": "c-producer", **QUIET})
    producer.produce("t", b"x")
    producer.flush(20)
    watched.until(lambda pushed: any("latency" in name for name in pushed.get("c-producer", ())))
    configure_group(watched.bootstrap, "c-group", share_auto_offset_reset="earliest")
    with share_consumer(watched.bootstrap, "c-group", ["t"], **{"client.id": "c-share"}) as consumer:
        settle(consumer, 1)
        watched.until(lambda pushed: "c-share" in pushed)


async def consume(bootstrap: str, group: str, **settings: Any) -> Any:
    """Return the id of a consumer that took a record and worked for half a second."""
    async with ShareConsumer(
        bootstrap_servers=bootstrap, group_id=group, client_id="ours", **settings
    ) as consumer:
        consumer.subscribe(["t"])
        assert await consumer.poll(1, timeout=20)
        instance_id = await consumer.client_instance_id(20)
        assert instance_id == await consumer.client_instance_id(0)
        await asyncio.sleep(0.5)
        return instance_id


def test_our_client_pushes(watched: Watched) -> None:
    produce(watched.bootstrap, "t", [b"x"])
    configure_group(watched.bootstrap, "our-group", share_auto_offset_reset="earliest")
    asyncio.run(consume(watched.bootstrap, "our-group"))
    ours = watched.pushed()["ours"]
    for name in (
        "kafka_client_consumer_share_fetch_manager_fetch_total",
        "kafka_client_consumer_share_coordinator_heartbeat_total",
        "kafka_client_consumer_share_fetch_manager_fetch_latency_max",
    ):
        assert ours[name]["group"] == "our-group", sorted(ours)


def test_a_client_that_is_not_to_push(watched: Watched) -> None:
    async def ask(**settings: Any) -> None:
        async with ShareConsumer(
            bootstrap_servers=watched.bootstrap, group_id="silent", client_id="silent", **settings
        ) as consumer:
            consumer.subscribe(["t"])
            await consumer.poll(timeout=0.2)
            await consumer.client_instance_id(5)

    with pytest.raises(RuntimeError, match=r"enable\.metrics\.push"):
        asyncio.run(ask(enable_metrics_push=False))
    assert "silent" not in watched.pushed()


def test_a_broker_that_asks_nobody(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "plain", "sharecore", QUICK_GROUPS)
    broker.start()

    async def ask() -> None:
        async with ShareConsumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            await consumer.client_instance_id(20)

    try:
        with pytest.raises(KafkaError) as refused:
            asyncio.run(ask())
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    finally:
        assert broker.terminate() == 0
