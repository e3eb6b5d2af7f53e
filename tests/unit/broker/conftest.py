from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import Member

from sharecore.protocol import ApiKey
from sharecore.security.certificates import Authority

_numbers = itertools.count()
_groups = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker per module; tests use topics of their own."""
    running = RunningBroker(tmp_path_factory.mktemp("data")).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a broker's certificate, and a pipe that holds up whoever opens it."""
    path: Path = tmp_path_factory.mktemp("home")
    Authority(path, days=2).issue("localhost", file="broker", hosts=["localhost"])
    os.mkfifo(path / "pipe")
    return path


@pytest.fixture
def topic(broker: RunningBroker) -> str:
    """Return a new topic with two partitions."""
    name = f"topic-{next(_numbers)}"
    asked = {"name": name, "num_partitions": 2, "replication_factor": 1}
    created = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    assert created.topics[0].error_code == 0
    return name


@pytest.fixture
def group(broker: RunningBroker) -> str:
    name = f"g-{next(_groups)}"
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": name, "configs": configs}]
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    assert answer.responses[0].error_code == 0
    return name


@pytest.fixture
def member(broker: RunningBroker, topic: str, group: str) -> Iterator[Member]:
    joined = Member(broker, group, topic)
    yield joined
    joined.client.close()
