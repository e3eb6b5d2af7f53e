"""Brokers, topics and groups. BROKER=apache runs the same tests on Apache Kafka, to check the tests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import configure_group, create_topic

KIND = os.environ.get("BROKER", "sharecore")
BrokerMaker = Callable[..., Broker]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"), KIND, QUICK_GROUPS)
    broker.start()
    yield broker
    status = broker.terminate()
    assert status == 0 or KIND != "sharecore", broker.read_log()[-4000:]


@pytest.fixture
def broker(shared_broker: Broker) -> Broker:
    """Return a broker that other tests use too, each with topics and groups of its own."""
    assert shared_broker.running(), f"an earlier test ended the broker:\n{shared_broker.read_log()[-4000:]}"
    return shared_broker


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[BrokerMaker]:
    """Make brokers of the test's own, not yet started; they are killed at its end."""
    made: list[Broker] = []

    def make(**settings: str) -> Broker:
        made.append(Broker(tmp_path / f"broker-{len(made)}", KIND, QUICK_GROUPS | settings))
        return made[-1]

    yield make
    for broker in made:
        broker.kill()


@pytest.fixture
def topic(broker: Broker) -> str:
    """Return a new topic with one partition."""
    name = f"topic-{next(_numbers)}"
    create_topic(broker.bootstrap, name)
    return name


@pytest.fixture
def group(broker: Broker) -> str:
    """Return a new group that starts at the beginning of its topics."""
    name = f"group-{next(_numbers)}"
    configure_group(broker.bootstrap, name, share_auto_offset_reset="earliest")
    return name
