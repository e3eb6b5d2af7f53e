"""Stock clients read answers that leave out records of a batch: each comes once, as it was produced."""

from __future__ import annotations

import json
import random
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, Broker, free_port
from tests.harness.clients import QUIET, configure_group, create_topic, settle, share_consumer
from tests.interop.conftest import KIND

pytestmark = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")

TOPIC, RECORDS, KEYS = "jobs", 300, 10
GO = Path("build/go/client").absolute()
CLIENTS = ["java 4.3.1", "java 4.4.0", "librdkafka", *(["franz-go"] if GO.exists() else [])]
"""`make interop-go` builds the client in Go, and runs these, too."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Seen = tuple[int, str, str]
METRICS = f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("thinned"), "sharecore", {"sharecore.metrics.listener": METRICS})
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def sent(broker: Broker) -> list[Seen]:
    """One record batch a codec, of values that no compression makes small."""
    create_topic(broker.bootstrap, TOPIC)
    chance = random.Random(3)
    sent: list[Seen] = []
    for codec in CODECS:
        settings = {"linger.ms": 1000, "compression.type": codec, **QUIET}
        producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
        for _ in range(RECORDS // len(CODECS)):
            key, value = f"k{len(sent) % KEYS}", str(chance.getrandbits(1000))
            sent.append((len(sent), key, value))
            producer.produce(TOPIC, value.encode(), key=key.encode())
        assert producer.flush(60) == 0
    return sent


def left_out(broker: Broker, group: str) -> float:
    """Bytes that answers have left out."""
    with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=20) as page:
        lines = page.read().decode().splitlines()
    name = f'sharecore_share_group_thinned_bytes_total{{group="{group}"'
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def by_java(broker: Broker, group: str, libs: Path) -> list[Seen]:
    arguments = ("values", broker.bootstrap, group, TOPIC, str(RECORDS))
    printed = java.run_program(java.PROBES / "ShareProbe.java", *arguments, libs=libs)
    rows = (line.split(" ") for line in printed.splitlines())
    return [(int(offset), key, value) for offset, key, value in rows]


def by_librdkafka(broker: Broker, group: str) -> list[Seen]:
    with share_consumer(broker.bootstrap, group, [TOPIC], **{"check.crcs": True}) as consumer:
        messages = settle(consumer, RECORDS)
    return [
        (each.offset() or 0, (each.key() or b"").decode(), (each.value() or b"").decode())
        for each in messages
    ]


def by_franz_go(broker: Broker, group: str, tmp_path: Path) -> list[Seen]:
    file = tmp_path / "properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap}\n")
    command = [str(GO), str(file), "accept", TOPIC, group, str(RECORDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows = map(json.loads, done.stdout.splitlines())
    return [(row["offset"], row["key"], row["value"]) for row in rows]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_record_comes_once_with_its_key_and_value(
    broker: Broker, sent: list[Seen], client: str, tmp_path: Path
) -> None:
    group = client.replace(" ", "-")
    configure_group(broker.bootstrap, group, share_ordering="key", share_auto_offset_reset="earliest")
    if client == "librdkafka":
        seen = by_librdkafka(broker, group)
    elif client == "franz-go":
        seen = by_franz_go(broker, group, tmp_path)
    else:
        seen = by_java(broker, group, KAFKA_LIBS if client.endswith("4.3.1") else java.CLIENT_LIBS)
    assert sorted(seen) == sent
    for key in range(KEYS):
        offsets = [offset for offset, name, _ in seen if name == f"k{key}"]
        assert offsets == sorted(offsets)
    assert left_out(broker, group) > sum(len(value) for _, _, value in sent)
