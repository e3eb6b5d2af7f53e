"""Quotas set, described and enforced: the same answers from Apache Kafka and from sharecore."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.differential.access.brokers import Guarded
from tests.differential.access.steps import compare
from tests.differential.quotas.requests import steps
from tests.differential.quotas.throttles import USERS, Observer

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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.timeout(120)
def test_the_same_answers(brokers: list[Guarded]) -> None:
    count, different = compare(brokers, steps())
    assert different == []
    assert count > 150
