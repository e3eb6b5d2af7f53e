"""Corrupted frames: the connection ends or the request is refused, and other clients do not notice."""

from __future__ import annotations

import logging
import random
import uuid

import pytest
from tests.harness.plausible import Names, message, variants
from tests.harness.running import Client, RunningBroker
from tests.harness.spoil import spoiled

from sharecore.broker.handlers import SERVED
from sharecore.protocol import ApiKey, codec

ROUNDS = 15
"""In each of two versions; `make abuse` sends 300."""
NAMES = Names("spoiled-t", uuid.UUID(int=1 << 64), "spoiled-g", "spoiled-x", "spoiled-u")


@pytest.mark.heavy
@pytest.mark.parametrize("api", sorted(SERVED), ids=lambda api: api.name)
def test_frames_that_lie_end_their_own_connection_alone(
    broker: RunningBroker, api: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    rnd = random.Random(int(api))
    served = SERVED[api]
    others = broker.connect()
    for version in sorted({served.min_version, served.max_version}):
        messages = codec(api, version)
        client = Client(broker.port)
        for _ in range(ROUNDS):
            request = message(api, version, NAMES, {"validate_only": True} | rnd.choice(variants(api)))
            client.send_frame(spoiled(messages.write_request(1, "spoiler", request), rnd)[4:])
            others.ask(ApiKey.API_VERSIONS, 0)
            client.close()
            client = Client(broker.port)
        client.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
