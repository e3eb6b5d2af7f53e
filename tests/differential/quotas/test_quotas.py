"""Quotas set, described and enforced: the same answers from Apache Kafka and from sharecore."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.differential.access.brokers import INSIDE, Guarded
from tests.differential.quotas.requests import Step, steps
from tests.differential.quotas.throttles import USERS, Observer

from sharecore.protocol import ApiKey

_SUPER = {"super.users": ";".join(f"User:{name}" for name in ("ANONYMOUS", *USERS))}
_ROOM_MS = 100


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Guarded]]:
    home = tmp_path_factory.mktemp("quotas")
    started = [Guarded(home / kind, kind, USERS, _SUPER) for kind in ("apache", "sharecore")]
    try:
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(Guarded.start, started))
        yield started
    finally:
        for broker in started:
            broker.stop()


@pytest.mark.timeout(120)
def test_clients_wait_as_long(brokers: list[Guarded]) -> None:
    with ThreadPoolExecutor() as at_once:
        pairs = zip(*at_once.map(lambda broker: Observer(broker).observe(), brokers), strict=True)
    different = []
    for apache, ours in pairs:
        room_ms = _ROOM_MS + apache.took_ms + ours.took_ms
        if apache.rest != ours.rest or abs(apache.waits_ms - ours.waits_ms) > room_ms:
            different.append((apache, ours))
    assert different == []


@pytest.mark.timeout(120)
def test_the_same_answers(brokers: list[Guarded]) -> None:
    different = []
    count = 0
    altered = False
    for step in steps():
        if altered and step.key is ApiKey.DESCRIBE_CLIENT_QUOTAS:
            time.sleep(0.3)  # Apache Kafka's broker hears of it from its controller
        altered = step.key is ApiKey.ALTER_CLIENT_QUOTAS
        apache, ours = (_answer(broker, step) for broker in brokers)
        count += 1
        if repr(apache) != repr(ours):
            different.append((step.name, apache, ours))
    assert different == []
    assert count > 150


def _answer(broker: Guarded, step: Step) -> Any:
    return _plain(broker.ask(INSIDE, step.key, step.version, step.fields))


def _plain(value: Any) -> Any:
    """An answer whose lists have one order: Apache Kafka's is that of hash tables."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return sorted((_plain(each) for each in value), key=repr)
    return value
