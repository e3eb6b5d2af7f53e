from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.harness.running import RunningBroker

from sharecore.protocol import ApiKey

_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker a module; tests keep to topics of their own."""
    running = RunningBroker(tmp_path_factory.mktemp("data")).start()
    yield running
    running.stop()


@pytest.fixture
def topic(broker: RunningBroker) -> str:
    """A new topic with two partitions."""
    name = f"topic-{next(_numbers)}"
    asked = {"name": name, "num_partitions": 2, "replication_factor": 1}
    created = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    assert created.topics[0].error_code == 0
    return name
