"""A home that keeps little of what it stores on its disk (`sharecore.bucket.cache.bytes`)."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.harness.running import RunningBroker
from tests.harness.until import until
from tests.unit.broker.test_bucket import create
from tests.unit.broker.test_home import home, produce
from tests.unit.broker.test_metrics import get

from sharecore.admin.doctor import data_directory
from sharecore.broker.store import backend as backend_module
from sharecore.client.blocking import ShareConsumer
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey
from sharecore.storage import StorageOptions
from sharecore.storage.bucket import BucketPlace, inspect

_CACHE = 16 << 20
_VALUE = 700_000
_RECORDS = 90
_PATIENCE_S = 60.0


def _values() -> list[bytes]:
    chance = random.Random(7)
    return [chance.randbytes(_VALUE) for _ in range(_RECORDS)]


def _figure(broker: RunningBroker, name: str) -> float:
    _, body = get(broker, "/metrics")
    lines = [line for line in body.splitlines() if line.startswith(name + " ")]
    return float(lines[0].split()[1])


def _shrunk(broker: RunningBroker) -> None:
    """Wait until most of what was written has left the disk, and the rest is within the bound."""
    until(lambda: _figure(broker, "sharecore_bucket_remote_bytes") >= 2 * _CACHE)
    until(lambda: _figure(broker, "sharecore_bucket_cache_bytes") <= _CACHE)


def _read(broker: RunningBroker) -> list[bytes]:
    """Read the topic from its start with librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition("old", 0, 0)])
        found: list[bytes] = []
        end = time.monotonic() + _PATIENCE_S
        while len(found) < _RECORDS and time.monotonic() < end:
            message = consumer.poll(1.0)
            if message is not None:
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                found.append(message.value() or b"")
        return found
    finally:
        consumer.close()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    real = backend_module._storage_options

    def options(config: BrokerConfig) -> StorageOptions:
        return dataclasses.replace(real(config), segment_bytes=4 << 20)

    monkeypatch.setattr(backend_module, "_storage_options", options)


@pytest.mark.heavy
def test_several_times_the_cache_is_read_back_after_restarts_and_a_lost_disk(tmp_path: Path) -> None:
    bucket, data = tmp_path / "bucket", tmp_path / "data"
    bucket.mkdir()
    bound = {"sharecore.bucket.cache.bytes": str(_CACHE)}
    values = _values()
    broker = home(data, bucket, **bound)
    try:
        create(broker, "old")
        for value in values:
            produce(broker, "old", [value])
        _shrunk(broker)
        assert _read(broker) == values
        assert _figure(broker, "sharecore_bucket_pieces_total") > 0
        status, text = get(broker, "/readyz")
        use = json.loads(text)["cache"]
        assert (status, use["bound"]) == (200, _CACHE)
        assert 0 < use["local"] <= _CACHE
        assert use["remote"] >= 2 * _CACHE
        described = inspect(BucketPlace(f"file://{bucket}"), int(time.time() * 1000)).cache
        assert described is not None
        assert described.bound_bytes == _CACHE
    finally:
        broker.stop()
    on_disk = sum(path.stat().st_blocks * 512 for path in data.rglob("*") if path.is_file())
    assert on_disk < _CACHE + (10 << 20), "the cache and what is not sealed"
    findings = data_directory(data)
    assert [each.what for each in findings if each.level == "bad"] == []
    assert any("MB of record batches are only in the bucket" in each.what for each in findings)
    described = inspect(BucketPlace(f"file://{bucket}"), int(time.time() * 1000)).cache
    assert described is None, "a broker that ends withdraws its description"
    broker = home(data, bucket, **bound)
    try:
        assert _read(broker) == values
        configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
        resources = [{"resource_type": 32, "resource_name": "workers", "configs": configs}]
        assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0][0] == 0
        shared: list[bytes] = []
        with ShareConsumer(
            {"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": "workers"}
        ) as consumer:
            consumer.subscribe(["old"])
            end = time.monotonic() + _PATIENCE_S
            while len(shared) < len(values) and time.monotonic() < end:
                shared.extend(bytes(record.value or b"") for record in consumer.poll(timeout=1.0))
        assert sorted(shared) == sorted(values)
    finally:
        broker.stop()
    shutil.rmtree(data)
    broker = home(data, bucket, **bound)
    try:
        _shrunk(broker)
        assert _read(broker) == values
    finally:
        broker.stop()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sharecore.bucket.cache.bytes": "20000000"}, "set sharecore.durability=bucket"),
        (
            {"sharecore.bucket.cache.bytes": "20000000", "sharecore.bucket.url": "s3://backups/queue"},
            "set sharecore.durability=bucket",
        ),
        (
            {
                "sharecore.bucket.cache.bytes": "1000",
                "sharecore.bucket.url": "s3://backups/queue",
                "sharecore.durability": "bucket",
            },
            "or at least 16777216",
        ),
        ({"sharecore.bucket.cache.bytes": "-1"}, "at least 0"),
    ],
)
def test_a_bound_that_is_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        BrokerConfig.from_properties(settings)
