"""`sharecore export-metrics`, on sharecore and on Apache Kafka."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request

import pytest
from confluent_kafka import AcknowledgeType
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.clients import produce, settle, share_consumer, take

from sharecore.metrics.exporter_families import EXPORTED

Samples = dict[tuple[str, frozenset[str]], float]


def once(bootstrap: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [SHARECORE, "export-metrics", "--once", "-b", bootstrap, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def read(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, *labels: str) -> float:
    return samples[name, frozenset(labels)]


def test_what_waits_for_a_group_and_how_long(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 6)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 6)
    began = time.time()
    produce(broker.bootstrap, topic, [b"y"] * 4)
    # Apache Kafka does not refresh a group without members before it has written its state
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        assert take(consumer)
        held = read(once(broker.bootstrap).stdout)
    assert of(held, "sharecore_exporter_up") == 1
    assert of(held, "sharecore_share_group_state", group, "Stable") == 1
    assert of(held, "sharecore_group_members", group) == 1
    assert of(held, "sharecore_share_group_lag", group, topic) == 4
    assert of(held, "sharecore_share_partition_lag", group, topic, "0") == 4
    assert of(held, "sharecore_exporter_share_state_readable") == 1
    oldest = held.get(("sharecore_share_group_oldest_unsettled_seconds", frozenset({group, topic})))
    assert oldest is None or 0 <= oldest <= time.time() - began + 60
    declared = {family.name for family in EXPORTED}
    assert {name for name, _ in held} <= declared


def test_records_that_come_back_are_poison_candidates(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"good", b"bad", b"bad", b"good"])
    settings = {"share.acknowledgement.mode": "explicit"}
    bad = 0
    with share_consumer(broker.bootstrap, group, [topic], **settings) as consumer:
        deadline = time.monotonic() + 30
        while bad < 6 and time.monotonic() < deadline:
            for record in consumer.poll(1.0):
                good = record.value() == b"good"
                bad += not good
                consumer.acknowledge(record, AcknowledgeType.ACCEPT if good else AcknowledgeType.RELEASE)
            consumer.commit_sync()
    assert bad >= 6
    samples = read(once(broker.bootstrap).stdout)
    assert of(samples, "sharecore_share_group_poison_candidates", group, topic) == 2
    samples = read(once(broker.bootstrap, "--poison-deliveries", "0").stdout)
    assert of(samples, "sharecore_exporter_share_state_readable") == 0
    assert ("sharecore_share_group_poison_candidates", frozenset({group, topic})) not in samples


def test_it_serves_until_it_is_stopped_and_says_when_the_cluster_is_gone(broker: Broker) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    serving = subprocess.Popen(
        [SHARECORE, "export-metrics", "-b", broker.bootstrap, "--listen", address, "--interval", "0.5"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert serving.stdout is not None
        assert serving.stdout.readline() == f"metrics on http://{address}/metrics\n"
        deadline = time.monotonic() + 30
        text = ""
        while "sharecore_exporter_up 1.0" not in text:
            assert time.monotonic() < deadline, text
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as page:
                text = page.read().decode()
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=20) as page:
            assert page.status == 200
    finally:
        serving.terminate()
        serving.wait(20)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("-b", "127.0.0.1:{port}"), 1, "127.0.0.1:{port}"),
        (("-b", "nowhere"), 2, "nowhere"),
        (("--listen", "9465"), 2, "--listen 9465: not an address; allowed: HOST:PORT"),
        (("-X", "what"), 2, "--set what: not KEY=VALUE"),
        (("--log-format", "xml"), 2, "--log-format xml: unknown"),
    ],
)
def test_what_cannot_be_had_is_one_line(
    broker: Broker, arguments: tuple[str, ...], status: int, said: str
) -> None:
    port = str(free_port())
    environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
    given = [each.format(port=port) for each in arguments]
    ended = subprocess.run(
        [SHARECORE, "export-metrics", "--once", *given],
        capture_output=True, text=True, timeout=60, env=environment,
    )  # fmt: skip
    assert ended.returncode == status
    assert said.format(port=port) in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def test_help_teaches() -> None:
    text = subprocess.run([SHARECORE, "export-metrics", "--help"], capture_output=True, text=True).stdout
    for word in (
        "--command-config",
        "--once",
        "--poison-deliveries",
        "READ",
        "DESCRIBE_CONFIGS",
        "__share_group_state",
    ):
        assert word in text
    assert re.search(r"Apache Kafka 4.2", text)
