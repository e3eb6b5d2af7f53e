"""From subscribe to the first record, default settings, in a group that another member has just left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic, produce, share_consumer
from tests.interop.conftest import KIND
from tests.interop.test_java_consumer import SOURCE

from sharecore.client.blocking import ShareConsumer

ROUNDS = 4
SECONDS_MAX = 3.0
"""An idle machine needs 1.0 s, the assignment interval; whoever waits for a heartbeat needs 5 s."""

pytestmark = pytest.mark.skipif(KIND == "apache", reason="a named difference: members wait for a heartbeat")


@pytest.fixture
def default_broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path, KIND)
    broker.start()
    create_topic(broker.bootstrap, "t")
    configure_group(broker.bootstrap, "g", share_auto_offset_reset="earliest")
    produce(broker.bootstrap, "t", [b"x"] * ROUNDS)
    yield broker
    broker.kill()


def check(waited: list[float]) -> None:
    """All but the first, which also waits for the client to be loaded."""
    assert len(waited) == ROUNDS
    assert max(waited[1:]) < SECONDS_MAX, waited


def test_our_client(default_broker: Broker) -> None:
    waited = []
    for _ in range(ROUNDS):
        with ShareConsumer(
            bootstrap_servers=default_broker.bootstrap, group_id="g", max_poll_records=1
        ) as consumer:
            began = time.monotonic()
            consumer.subscribe(["t"])
            assert consumer.poll(1, timeout=10)
            waited.append(time.monotonic() - began)
    check(waited)


def test_confluent_kafka(default_broker: Broker) -> None:
    waited = []
    for _ in range(ROUNDS):
        produce(default_broker.bootstrap, "t", [b"x"])
        began = time.monotonic()
        with share_consumer(
            default_broker.bootstrap, "g", ["t"], **{"share.acknowledgement.mode": "implicit"}
        ) as consumer:
            while not consumer.poll(0.2):
                assert time.monotonic() - began < 10
            waited.append(time.monotonic() - began)
    check(waited)


def test_java(default_broker: Broker) -> None:
    arguments = ("first", default_broker.bootstrap, "g", "t", str(ROUNDS))
    shown = java.run_program(SOURCE, *arguments, libs=java.CLIENT_LIBS)
    lines = [line.split() for line in shown.splitlines()]
    check([int(line[1]) / 1000 for line in lines if line[:1] == ["first"]])
