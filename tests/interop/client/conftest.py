"""The client's tests run on sharecore, and in `make interop` on Apache Kafka too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import configure_group

from sharecore.client import ShareConsumer

KINDS = tuple(os.environ.get("CLIENT_BROKERS", "sharecore").split())
ConsumerMaker = Callable[..., ShareConsumer]


@pytest.fixture(scope="session", params=KINDS)
def shared_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp(request.param), request.param, QUICK_GROUPS)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture(params=KINDS)
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """Provide a started broker of the test's own."""
    broker = Broker(tmp_path / "broker", request.param, QUICK_GROUPS)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def consumer(broker: Broker, topic: str, group: str) -> ConsumerMaker:
    """Make members of the test's group, subscribed to its topic, in explicit mode unless told."""

    def make(*, topics: list[str] | None = None, **settings: Any) -> ShareConsumer:
        settings = {"share_acknowledgement_mode": "explicit", "group_id": group} | settings
        made = ShareConsumer(bootstrap_servers=broker.bootstrap, **settings)
        made.subscribe(topics or [topic])
        return made

    return make


@pytest.fixture
def short_lock(broker: Broker, group: str) -> int:
    """Give the group's locks a short time, yet one that a busy machine keeps up with; in milliseconds."""
    configure_group(broker.bootstrap, group, share_record_lock_duration_ms=3000)
    return 3000
