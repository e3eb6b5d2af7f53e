"""A request leaves no reference cycles: its memory is free once it is answered, without the garbage
collector.

The collector rarely visits old objects. Cycles of one request with 100,000 entries kept 170 MB.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator

import pytest
from tests.harness.plausible import Message, Names, lists, message, variants
from tests.harness.running import Client, RunningBroker

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.protocol import ApiKey

APIS = {**SERVED, **TELEMETRY}
ENTRIES = 300
_LOGIN = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.fixture(scope="module", params=["ANONYMOUS", "nobody"], ids=["super user", "no rights"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{request.param}",
        "sharecore.metrics.listener": "127.0.0.1:0",
        "sharecore.telemetry.enable": "true",
        "group.initial.rebalance.delay.ms": "0",
    }
    running = RunningBroker(tmp_path_factory.mktemp("broker"), settings).start()
    yield running
    running.stop()
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # later collections need not visit what all tests have imported


@pytest.fixture
def client(broker: RunningBroker) -> Client:
    return broker.connect()


def requests(api: ApiKey, word: str, entries: int) -> Iterator[tuple[str, Message]]:
    """Return requests with this many entries in one of their lists each, in each variant."""
    version = APIS[api].max_version
    names = Names(f"{word}-t", uuid.UUID(int=1 << 64), f"{word}-g", f"{word}-x", f"{word}-u", "10.0.0.1")
    for path in lists(api, version):
        for fixed in variants(api):
            if all(value is not None or name not in path.split(".") for name, value in fixed.items()):
                yield f"{path} {fixed}", message(api, version, names, fixed, {path: entries})


def left_by(client: Client, api: ApiKey, fields: Message) -> int:
    """Return how many objects wait for the collector after a request."""
    gc.collect()
    gc.freeze()  # what remains is not visited again
    gc.disable()
    try:
        client.ask(api, APIS[api].max_version, **fields)
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.heavy
@pytest.mark.parametrize("api", sorted(set(APIS) - _LOGIN), ids=lambda api: api.name)
def test_what_a_request_took_is_free_once_it_is_answered(client: Client, api: ApiKey) -> None:
    for _, fields in requests(api, "first", 1):
        left_by(client, api, fields)  # loads everything this API needs
        break
    for title, fields in requests(api, api.name.lower(), ENTRIES):
        left = left_by(client, api, fields)
        assert left < ENTRIES, f"{title}: {left} objects wait for the collector"
