"""Fixtures for pytest, which finds them by the entry point `pytest11`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping

import pytest

from sharecore.testing.broker import EphemeralBroker


@pytest.fixture(scope="session")
def sharecore_broker_settings() -> Mapping[str, str]:
    """Return the settings of `sharecore_broker`, by Kafka's names; override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def sharecore_broker(sharecore_broker_settings: Mapping[str, str]) -> Iterator[EphemeralBroker]:
    """Yield a running broker for the whole test session; it starts on first use."""
    with EphemeralBroker(sharecore_broker_settings) as broker:
        yield broker


@pytest.fixture
def sharecore_topic(sharecore_broker: EphemeralBroker) -> str:
    """Return the name of a new topic with one partition, for one test."""
    name = f"topic-{secrets.token_hex(4)}"
    sharecore_broker.create_topic_blocking(name)
    return name


@pytest.fixture
def sharecore_group(sharecore_broker: EphemeralBroker) -> str:
    """Return the name of a new share group, for one test; it reads topics from their first record."""
    name = f"group-{secrets.token_hex(4)}"
    sharecore_broker.create_group_blocking(name)
    return name
