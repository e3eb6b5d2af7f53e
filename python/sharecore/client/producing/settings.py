"""A producer's settings, named as in Kafka's clients and confluent-kafka."""

from __future__ import annotations

import difflib
import inspect
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sharecore.client import java_unused
from sharecore.client.java_names import from_java
from sharecore.client.producing.records import Serializer, serialize
from sharecore.client.settings import connection_settings_among, read_connection_settings, whole_number
from sharecore.errors import ConfigError

logger = logging.getLogger(__name__)

_TOKEN_SECONDS = 300
"""How long an application's token is used, before the next one is requested."""
_MS_MAX = 2**31 - 1
_OURS = ("max.block.ms", "key.serializer", "value.serializer")
_OF_JAVA = {
    "max.request.size": "message.max.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
}
_NOT_RDKAFKAS = ("default.api.timeout.ms",)
_NEAR = (
    "acks",
    "batch.num.messages",
    "batch.size",
    "buffer.memory",
    "compression.level",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "message.max.bytes",
    "partitioner",
    "queue.buffering.max.messages",
    "retries",
    "statistics.interval.ms",
    "transaction.timeout.ms",
    "transactional.id",
    *_OURS,
)
_DELIVERY_TIMEOUT_MS = 120_000
_DEFAULTS: dict[str, object] = {
    "client.id": "sharecore",
    "enable.idempotence": True,
    "partitioner": "murmur2_random",
    "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
    "linger.ms": 5,
    "queue.buffering.max.kbytes": 65_536,
}
"""No losses, no duplicates, and Java's partitioning; limits as Java's by default."""
_SAME = {
    "acks": "request.required.acks",
    "compression.type": "compression.codec",
    "delivery.timeout.ms": "message.timeout.ms",
    "linger.ms": "queue.buffering.max.ms",
    "retries": "message.send.max.retries",
}
"""Two names of one setting: Kafka's, and librdkafka's, which appears in its errors."""
_REFUSED = {
    "partitioner.class": "it is a Java class; set partitioner (default: murmur2_random)",
    "interceptor.classes": "it is for Java",
    "error_cb": "errors are logged, and raised by the calls affected",
    "on_delivery": "await send, or use the result of send_many",
    "oauth_cb": "set sasl.oauthbearer.token to a function that returns a token",
    "logger": "the log goes to the logger sharecore.client.producing",
}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of a producer.

    Args:
        rdkafka: for confluent-kafka.
        max_block_ms: how long a record waits for space among pending ones.
        delivery_timeout_ms: how long sending a record is retried.
    """

    rdkafka: dict[str, object] = field(repr=False)
    max_block_ms: int
    delivery_timeout_ms: int
    key_serializer: Serializer
    value_serializer: Serializer

    @property
    def transactional(self) -> bool:
        return bool(self.rdkafka.get("transactional.id"))


def read_producer_settings(
    config: Mapping[str, object] | None = None, /, **keywords: object
) -> ProducerSettings:
    """Read a producer's settings: a mapping with Kafka's names, keywords with `_` for each dot, or both.

    Raises:
        ConfigError: an invalid or missing value, or a setting only for Java.
    """
    given = from_java(config or {}) | from_java(
        {name.replace("_", "."): value for name, value in keywords.items()}
    )
    for name, why in _REFUSED.items():
        if name in given:
            raise ConfigError(f"{name} cannot be set for a producer: {why}")
    connection = connection_settings_among(given)
    read_connection_settings(connection)
    chosen = dict(_DEFAULTS)
    for name, value in given.items():
        if name in java_unused.UNUSED:
            if (warning := java_unused.warning(name, value)) is not None:
                logger.warning(warning)
        elif name == "buffer.memory":
            chosen["queue.buffering.max.kbytes"] = max(1, _whole(name, value, 2**41) // 1024)
        elif name not in (*_OURS, *_NOT_RDKAFKAS):
            for alias in (name, *(other for other, same in _SAME.items() if same == name)):
                chosen.pop(alias, None)
            chosen[_OF_JAVA.get(name, name)] = value
    if chosen.get("transactional.id") and not given.keys() & {"delivery.timeout.ms", "message.timeout.ms"}:
        # retrying a record longer than its transaction lasts is not allowed
        longest = _whole("transaction.timeout.ms", given.get("transaction.timeout.ms", 60_000))
        chosen["delivery.timeout.ms"] = min(_DELIVERY_TIMEOUT_MS, longest)
    _log_in(chosen)
    timeout = chosen.get("delivery.timeout.ms", chosen.get("message.timeout.ms"))
    return ProducerSettings(
        chosen,
        _whole("max.block.ms", given.get("max.block.ms", 60_000)),
        _whole("delivery.timeout.ms", timeout) or _MS_MAX,
        _serializer("key.serializer", given.get("key.serializer")),
        _serializer("value.serializer", given.get("value.serializer")),
    )


def _log_in(chosen: dict[str, object]) -> None:
    """Log in like the consumer, in confluent-kafka's settings."""
    if isinstance(servers := chosen.get("bootstrap.servers"), list | tuple):
        chosen["bootstrap.servers"] = ",".join(map(str, servers))
    if "ssl.certificate.location" in chosen:
        chosen.setdefault("ssl.key.location", chosen["ssl.certificate.location"])
    if "sasl.oauthbearer.token.endpoint.url" in chosen:
        chosen.setdefault("sasl.oauthbearer.method", "oidc")
    token = chosen.pop("sasl.oauthbearer.token", None)
    if token is None:
        return

    def found(_: str) -> tuple[str, float]:
        given = token() if callable(token) else token
        if inspect.isawaitable(given) or not isinstance(given, str):
            raise ConfigError("sasl.oauthbearer.token: a producer needs a string, or a plain function of one")
        return given, time.time() + _TOKEN_SECONDS

    chosen["oauth_cb"] = found


def _whole(name: str, value: object, high: int = _MS_MAX) -> int:
    return whole_number(0, high, name, value)


def _serializer(name: str, value: object) -> Serializer:
    if value is None:
        return serialize
    if not callable(value):
        raise ConfigError(f"{name}={value!r}: pass a function from a value to bytes")
    function: Serializer = value
    return function


def refused(error: str, settings: ProducerSettings) -> ConfigError:
    """Convert confluent-kafka's error about invalid settings."""
    for name in settings.rdkafka:
        if f'property: "{name}"' in error:
            close = difflib.get_close_matches(name, _NEAR, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            return ConfigError(f"{name} is not a setting of a producer{hint}")
    for kafkas, name in _SAME.items():
        if kafkas in settings.rdkafka:
            error = error.replace(f'"{name}"', f'"{kafkas}"')
    return ConfigError(error)
