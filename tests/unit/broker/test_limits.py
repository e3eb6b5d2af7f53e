"""Settings that are passed on to the network layer; `tests/unit/network` tests each limit."""

from __future__ import annotations

from dataclasses import fields

import pytest

from sharecore.broker.connections.limits import connection_limits
from sharecore.broker.store.backend import _storage_options
from sharecore.config import BrokerConfig, broker_keys
from sharecore.network import Limits

OF_THE_NETWORK = {
    "socket.request.max.bytes": "frame_bytes_max",
    "sharecore.connection.max.pipelined.requests": "pipeline_max",
    "sharecore.connection.max.unread.bytes": "write_buffer_bytes_max",
    "socket.send.buffer.bytes": "send_buffer_bytes",
    "sharecore.io.threads": "io_threads",
    "queued.max.request.bytes": "request_bytes_max",
    "sharecore.max.unread.bytes": "answer_bytes_max",
    "max.connections": "connections_max",
    "max.connections.per.ip": "connections_max_per_ip",
    "max.connection.creation.rate": "creation_rate_max",
    "connections.max.idle.ms": "idle_ms_max",
    "sharecore.handshake.timeout.ms": "handshake_ms_max",
    "sharecore.handshakes.max": "handshakes_max",
}


def test_each_limit_of_the_network_has_its_setting() -> None:
    values = {name: 1_000_000 + number for number, name in enumerate(OF_THE_NETWORK)}
    values["queued.max.request.bytes"] = 2_000_000
    values["sharecore.io.threads"] = 7
    config = BrokerConfig.from_properties({name: str(value) for name, value in values.items()})
    limits = connection_limits(config, {}, {})
    assert {name: getattr(limits, field) for name, field in OF_THE_NETWORK.items()} == values
    assert {field.name for field in fields(Limits)} >= set(OF_THE_NETWORK.values())
    assert OF_THE_NETWORK.keys() <= broker_keys().keys()


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_how_durable_a_write_is(durability: str) -> None:
    """sharecore.durability reaches the store; the crate tests what survives which failure."""
    config = BrokerConfig.from_properties({"sharecore.durability": durability})
    assert _storage_options(config).durability == durability
