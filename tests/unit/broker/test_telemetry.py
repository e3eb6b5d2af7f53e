"""Clients are asked for their metrics, which then appear on the metrics page."""

from __future__ import annotations

import gzip
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from tests.harness.running import Client, RunningBroker

from sharecore.broker.broker import Broker
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError, ErrorCode
from sharecore.protocol import ApiKey

SETTINGS = {"sharecore.metrics.listener": "127.0.0.1:0", "sharecore.telemetry.enable": "true"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS).start()
    subscribe(running, metrics="*", interval_ms="100")
    yield running
    running.stop()


def subscribe(broker: RunningBroker, name: str = "all", **settings: str) -> None:
    configs = [
        {"name": key.replace("_", "."), "config_operation": 0, "value": value}
        for key, value in settings.items()
    ]
    resources = [{"resource_type": 16, "resource_name": name, "configs": configs}]
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    assert answer.responses[0].error_code == 0, answer


def payload(count: int = 1, name: str = "depth") -> bytes:
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for number in range(count):
        metrics.add(name=f"{name}.{number}").gauge.data_points.add(as_double=number)
    written: bytes = data.SerializeToString()
    return written


def ask(client: Client, instance_id: UUID | None = None) -> Any:
    return client.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, client_instance_id=instance_id)


def push(client: Client, asked: Any, metrics: bytes, compression: int = 0, *, last: bool = False) -> int:
    answer = client.ask(
        ApiKey.PUSH_TELEMETRY,
        0,
        client_instance_id=asked.client_instance_id,
        subscription_id=asked.subscription_id,
        terminating=last,
        compression_type=compression,
        metrics=metrics,
    )
    code: int = answer.error_code
    return code


def page(broker: RunningBroker) -> str:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{broker.broker.metrics_port}/metrics", timeout=20
    ) as answer:
        text: str = answer.read().decode()
    return text


def test_what_is_pushed_is_on_the_page(broker: RunningBroker) -> None:
    client = broker.connect("the-app")
    asked = ask(client)
    assert push(client, asked, gzip.compress(payload(2)), 1) == 0
    shown = page(broker)
    assert 'kafka_client_depth_1{client_instance_id="' in shown
    assert 'client_id="the-app"} 1.0\n' in shown
    assert "kafka_server_client_metrics_instance_count 1.0\n" in shown
    assert 'sharecore_client_metrics_pushes_total{error="NONE"}' in shown
    assert push(client, asked, b"", last=True) == 0
    broker.until_gone(client)
    shown = page(broker)
    assert "kafka_server_client_metrics_instance_count 0.0\n" in shown
    assert "kafka_client_depth_1" in shown, "what it said last is still to be seen"


def test_a_push_that_expands_without_bound_is_refused(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, SETTINGS | {"telemetry.max.bytes": "1000"}).start()
    try:
        client = running.connect()
        asked = ask(client)
        assert asked.telemetry_max_bytes == 1000
        bomb = gzip.compress(b"\0" * 100_000)
        assert len(bomb) < 1000
        assert push(client, asked, bomb, 1) == ErrorCode.INVALID_RECORD
        assert (
            push(running.connect(), ask(client, UUID(int=7)), payload(200)) == ErrorCode.TELEMETRY_TOO_LARGE
        )
    finally:
        running.stop()


def test_series_and_clients_are_bounded(tmp_path: Path) -> None:
    limits = {
        "sharecore.telemetry.series.max": "5",
        "sharecore.telemetry.client.series.max": "3",
        "sharecore.telemetry.instances.max": "2",
    }
    running = RunningBroker(tmp_path, SETTINGS | limits).start()
    try:
        for name in ("a", "b", "c"):
            client = running.connect(name)
            assert push(client, ask(client), payload(4)) == 0
        shown = page(running)
        assert "sharecore_client_metrics_series 5.0\n" in shown
        assert "sharecore_client_metrics_series_left_out 3.0\n" in shown
        assert 'client_id="a"' not in shown
        assert "kafka_server_client_metrics_instance_count 2.0\n" in shown
    finally:
        running.stop()


def test_subscriptions_outlive_the_broker(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, SETTINGS).start()
    subscribe(running, metrics="a.,b.", interval_ms="700", match="client_id=app-.*")
    running.stop()
    running = RunningBroker(tmp_path, SETTINGS).start()
    try:
        assert ask(running.connect("app-1")).requested_metrics == ["a.", "b."]
        assert ask(running.connect("other")).requested_metrics == []
    finally:
        running.stop()


def test_without_it_nothing_is_offered_or_loaded(tmp_path: Path) -> None:
    off = RunningBroker(tmp_path, {"sharecore.metrics.listener": "127.0.0.1:0"}).start()
    try:
        offered = off.ask(ApiKey.API_VERSIONS, 3, client_software_name="t", client_software_version="1")
        keys = {each.api_key for each in offered.api_keys}
        assert not keys & {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
        with pytest.raises(EOFError):
            ask(off.connect())
        assert off.broker.telemetry is None
        assert "client_metrics" not in page(off)
        # subscriptions may be created before it is enabled
        subscribe(off, metrics="a")
    finally:
        off.stop()


def test_it_needs_a_page_of_metrics_and_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"without sharecore\.metrics\.listener"):
        BrokerConfig.from_properties({"sharecore.telemetry.enable": "true"})
    config = BrokerConfig.from_properties(SETTINGS | {"log.dirs": str(tmp_path)})
    for name in [
        each
        for each in sys.modules
        if each.startswith(("sharecore.metrics.telemetry", "sharecore.broker.client_telemetry"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    with pytest.raises(ConfigError, match=r"sharecore\[broker\]"):
        Broker(config)
