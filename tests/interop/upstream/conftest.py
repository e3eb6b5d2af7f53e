"""Existing clusters: Apache Kafka 3.9.1 and 4.3.1, each one broker that all tests share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.harness.broker import KAFKA_LIBS, ROOT, Broker

LIBS = {"3.9.1": ROOT / "build/jars/kafka-3.9.1", "4.3.1": KAFKA_LIBS}
_SMALL = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
}
_numbers = itertools.count()


@pytest.fixture(scope="session", params=["3.9.1", pytest.param("4.3.1", marks=pytest.mark.long)])
def existing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    libs = LIBS[request.param]
    assert (libs / ".done").exists(), f"no jars in {libs}: run `make jars`"
    broker = Broker(tmp_path_factory.mktemp("existing"), "apache", _SMALL, libs=libs)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def name() -> str:
    """Return a name that no other test uses."""
    return f"upstream-{next(_numbers)}"
