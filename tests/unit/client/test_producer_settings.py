"""A producer's settings, as in other clients."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from sharecore.client import BlockingProducer, Producer
from sharecore.client import ShareConsumer as AsyncConsumer
from sharecore.client.blocking import ShareConsumer
from sharecore.client.producing.settings import read_producer_settings
from sharecore.errors import ConfigError

NEEDED = {"bootstrap.servers": "127.0.0.1:1"}


def test_nothing_is_lost_or_sent_twice_unless_told() -> None:
    chosen = read_producer_settings(NEEDED).rdkafka
    assert chosen["enable.idempotence"] is True
    assert chosen["partitioner"] == "murmur2_random"
    assert "acks" not in chosen


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"buffer.memory": 1 << 20}, "queue.buffering.max.kbytes", 1024),
        ({"max.request.size": 5}, "message.max.bytes", 5),
        ({"request.timeout.ms": 5000}, "socket.timeout.ms", 5000),
        ({"linger.ms": 7}, "linger.ms", 7),
        ({"queue.buffering.max.ms": 7}, "queue.buffering.max.ms", 7),
        ({"compression.type": "zstd"}, "compression.type", "zstd"),
        ({"ssl.certificate.location": "both.pem"}, "ssl.key.location", "both.pem"),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"},
            "ssl.ca.location",
            "ca.pem",
        ),
    ],
)
def test_a_name_of_java_or_librdkafka(given: dict[str, Any], name: str, value: object) -> None:
    chosen = read_producer_settings(NEEDED | given).rdkafka
    assert chosen[name] == value
    assert not {"linger.ms", "queue.buffering.max.ms"} <= chosen.keys()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"batch.sise": 5}, "batch.sise is not a setting of a producer; did you mean batch.size"),
        ({"partitioner.class": "x"}, "partitioner.class cannot be set for a producer"),
        ({"acks": 1}, "acks"),
        ({"linger.ms": "soon"}, "linger.ms"),
        ({"compression.type": "rar"}, "compression.type"),
        ({"max.block.ms": -1}, "max.block.ms=-1"),
        ({"value.serializer": "x"}, "value.serializer='x'"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.username is missing"),
        ({"sasl.mechanism": "PLAIN"}, "has no effect"),
    ],
)
def test_what_cannot_stand(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        BlockingProducer(NEEDED | given)


def test_a_server_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        BlockingProducer()


@pytest.mark.parametrize("given", ["localhost:9092", 9092, [("bootstrap.servers", "localhost:9092")]])
def test_settings_are_a_mapping(given: Any) -> None:
    for made in (BlockingProducer, ShareConsumer):
        with pytest.raises(ConfigError, match="pass a mapping, such as"):
            made(given)


@pytest.mark.parametrize("made", [Producer, AsyncConsumer])
def test_without_an_event_loop_the_error_names_the_class_that_needs_none(made: Any) -> None:
    with pytest.raises(
        RuntimeError, match=r"needs a running event loop: .*, or use sharecore\.client\.[Bb]loc"
    ):
        made(NEEDED | ({"group.id": "g"} if made is AsyncConsumer else {}))


def test_what_java_alone_acts_on_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_producer_settings(NEEDED | {"metric.reporters": "x", "client.dns.lookup": "use_all_dns_ips"})
    assert caplog.messages == ["metric.reporters=x has no effect: read them with metrics()"]


@pytest.mark.parametrize("token", ["abc", lambda: "abc"])
def test_a_token_is_given_to_librdkafka(token: object) -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    chosen = read_producer_settings(NEEDED | login | {"sasl.oauthbearer.token": token}).rdkafka
    give = chosen["oauth_cb"]
    assert callable(give)
    assert give("")[0] == "abc"
