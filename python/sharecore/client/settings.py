"""The settings of a client, named as in confluent-kafka and Kafka's Java client."""

from __future__ import annotations

import contextlib
import difflib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsInt

from sharecore.client import java_unused
from sharecore.client.java_names import Value, from_java
from sharecore.errors import ConfigError

logger = logging.getLogger(__name__)

Deserializer = Callable[[bytes], object]
Parser = Callable[[str, object], object]

IMPLICIT, EXPLICIT = "implicit", "explicit"
BATCH_OPTIMIZED, RECORD_LIMIT = "batch_optimized", "record_limit"


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name}={value!r}: must be a non-empty string")
    return value


def _optional_text(name: str, value: object) -> str | None:
    return None if value is None or value == "" else _text(name, value)


def whole_number(low: int, high: int, name: str, value: object) -> int:
    """Return a setting's whole number; raise ConfigError."""
    number = None
    if isinstance(value, str | bytes | SupportsInt) and not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = int(value)
    if number is None or not low <= number <= high:
        raise ConfigError(f"{name}={value!r}: must be a whole number from {low} to {high}")
    return number


def _number(low: int, high: int) -> Parser:
    return partial(whole_number, low, high)


def _choice(*allowed: str, lower: bool = True) -> Parser:
    def parse(name: str, value: object) -> str:
        chosen = str(value).lower() if lower else str(value).upper()
        if chosen not in allowed:
            raise ConfigError(f"{name}={value!r}: must be one of {', '.join(allowed)}")
        return chosen

    return parse


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ConfigError(f"{name}={value!r}: must be true or false")


def _callable(name: str, value: object) -> Deserializer | None:
    if value is None or callable(value):
        function: Deserializer | None = value
        return function
    raise ConfigError(f"{name}={value!r}: must be a function from bytes to a value")


def _addresses(name: str, value: object) -> tuple[tuple[str, int], ...]:
    parts = value.split(",") if isinstance(value, str) else value
    found = []
    for part in parts if isinstance(parts, Iterable) else ():
        text = str(part).strip().rpartition("://")[2]
        host, colon, port = text.rpartition(":")
        if not host or (host.count(":") > 0 and not host.startswith("[")) or not colon:
            host, port = text, "9092"
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f"{name}={value!r}: must be comma-separated host:port addresses")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ConfigError(f"{name}={value!r}: must be at least one host:port address")
    return tuple(found)


def _token(name: str, value: object) -> str | Callable[[], object] | None:
    if value is None or callable(value) or isinstance(value, str):
        return value or None
    raise ConfigError(f"{name}: must be a token or a function that returns one")


def _address(name: str, value: object) -> str | None:
    text = _optional_text(name, value)
    if text is not None and not text.startswith(("https://", "http://")):
        raise ConfigError(f"{name}={value!r}: must be an https: or http: URL")
    return text


_MS_MAX = 2**31 - 1
_TIME = _number(0, _MS_MAX)
_CONNECTION_KEYS: dict[str, tuple[Parser, object]] = {
    "bootstrap.servers": (_addresses, None),
    "client.id": (_text, "sharecore"),
    "receive.message.max.bytes": (_number(1_000, _MS_MAX), 100_000_000),
    "request.timeout.ms": (_number(10, _MS_MAX), 30_000),
    "default.api.timeout.ms": (_TIME, 60_000),
    "socket.connection.setup.timeout.ms": (_number(10, _MS_MAX), 10_000),
    "reconnect.backoff.ms": (_TIME, 50),
    "reconnect.backoff.max.ms": (_TIME, 1_000),
    "retry.backoff.ms": (_TIME, 100),
    "retry.backoff.max.ms": (_TIME, 1_000),
    "metadata.max.age.ms": (_number(10, _MS_MAX), 300_000),
    "security.protocol": (
        _choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", lower=False),
        "PLAINTEXT",
    ),
    "ssl.ca.location": (_optional_text, None),
    "ssl.ca.pem": (_optional_text, None),
    "ssl.certificate.location": (_optional_text, None),
    "ssl.key.location": (_optional_text, None),
    "ssl.key.password": (_optional_text, None),
    "ssl.endpoint.identification.algorithm": (_choice("https", "none"), "https"),
    "enable.ssl.certificate.verification": (_flag, True),
    "sasl.mechanism": (
        _choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", lower=False),
        None,
    ),
    "sasl.username": (_optional_text, None),
    "sasl.password": (_optional_text, None),
    "sasl.oauthbearer.token": (_token, None),
    "sasl.oauthbearer.token.endpoint.url": (_address, None),
    "sasl.oauthbearer.client.id": (_optional_text, None),
    "sasl.oauthbearer.client.secret": (_optional_text, None),
    "sasl.oauthbearer.scope": (_optional_text, None),
    "sasl.oauthbearer.method": (_choice("default", "oidc"), "default"),
}
_CONSUMER_KEYS: dict[str, tuple[Parser, object]] = {
    "group.id": (_text, None),
    "client.rack": (_optional_text, None),
    "share.acknowledgement.mode": (_choice(IMPLICIT, EXPLICIT), IMPLICIT),
    "share.acquire.mode": (_choice(BATCH_OPTIMIZED, RECORD_LIMIT), BATCH_OPTIMIZED),
    "max.poll.records": (_number(1, 1_000_000), 500),
    "max.poll.interval.ms": (_number(1, _MS_MAX), 300_000),
    "prefetch.records": (_number(0, 1_000_000), None),
    "lease.max.ms": (_number(1, _MS_MAX), 3_600_000),
    "fetch.min.bytes": (_number(0, _MS_MAX), 1),
    "fetch.max.bytes": (_number(1, _MS_MAX), 52_428_800),
    "fetch.wait.max.ms": (_number(10, _MS_MAX), 500),
    "enable.metrics.push": (_flag, True),
    "key.deserializer": (_callable, None),
    "value.deserializer": (_callable, None),
}
_ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_OF_PASSWORDS = ("sasl.mechanism", "sasl.username", "sasl.password")
_OF_TOKENS = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of every client; names are the keys with `_` for dots, times in milliseconds."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str
    receive_message_max_bytes: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    security_protocol: str
    ssl_ca_location: str | None
    ssl_ca_pem: str | None
    ssl_certificate_location: str | None
    ssl_key_location: str | None
    ssl_key_password: str | None
    ssl_endpoint_identification_algorithm: str
    enable_ssl_certificate_verification: bool
    sasl_mechanism: str | None
    sasl_username: str | None
    sasl_password: str | None
    sasl_oauthbearer_token: str | Callable[[], object] | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_id: str | None
    sasl_oauthbearer_client_secret: str | None
    sasl_oauthbearer_scope: str | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bootstrap_servers={self.bootstrap_servers})"

    @property
    def tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        return self.security_protocol.startswith("SASL")


@dataclass(frozen=True, slots=True, repr=False)
class Settings(ConnectionSettings):
    """Settings of a share consumer."""

    group_id: str
    client_rack: str | None
    share_acknowledgement_mode: str
    share_acquire_mode: str
    max_poll_records: int
    max_poll_interval_ms: int
    prefetch_records: int
    lease_max_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_wait_max_ms: int
    enable_metrics_push: bool
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None

    @property
    def explicit(self) -> bool:
        """Whether the application acknowledges each record itself."""
        return self.share_acknowledgement_mode == EXPLICIT


def read_settings(config: Mapping[str, object] | None = None, /, **keywords: object) -> Settings:
    """Read a share consumer's settings: a mapping with Kafka's names, keywords with `_` for each dot, or
    both.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """
    values = _read(_CONNECTION_KEYS | _CONSUMER_KEYS, "a share consumer", config, keywords)
    if values["group_id"] is None:
        raise ConfigError("group.id is missing")
    if values["prefetch_records"] is None:
        values["prefetch_records"] = 2 * values["max_poll_records"]
    return Settings(**values)


def read_connection_settings(
    config: Mapping[str, object] | None = None, /, **keywords: object
) -> ConnectionSettings:
    """Read the settings common to all clients; raise ConfigError as `read_settings` does."""
    return ConnectionSettings(**_read(_CONNECTION_KEYS, "an admin client", config, keywords))


def connection_settings_among(config: Mapping[str, Value]) -> dict[str, Value | str]:
    """Return those of a client's settings that `read_connection_settings` knows."""
    return {
        name: value
        for name, value in from_java(config).items()
        if _ALIASES.get(name, name) in _CONNECTION_KEYS
    }


def _read(
    keys: Mapping[str, tuple[Parser, object]],
    client: str,
    config: Mapping[str, object] | None,
    keywords: Mapping[str, object],
) -> dict[str, Any]:
    given: dict[str, object] = {}
    dotted = {key.replace("_", "."): value for key, value in keywords.items()}
    for name, value in [*from_java(config or {}).items(), *from_java(dotted).items()]:
        name = _ALIASES.get(name, name)
        if name in java_unused.REFUSED and "group.id" in keys:
            raise ConfigError(f"{name} cannot be set for {client}: {java_unused.REFUSED[name]}")
        if name in java_unused.UNUSED:
            if (warning := java_unused.warning(name, value)) is not None:
                logger.warning(warning)
            continue
        if name not in keys:
            close = difflib.get_close_matches(name, keys, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"{name} is not a setting of {client}{hint}")
        if name in given and given[name] != value:
            raise ConfigError(f"{name} is given twice, as {given[name]!r} and as {value!r}")
        given[name] = value
    values = {
        name.replace(".", "_"): parse(name, given[name]) if name in given else default
        for name, (parse, default) in keys.items()
    }
    if values["bootstrap_servers"] is None:
        raise ConfigError("bootstrap.servers is missing")
    _check_security(values)
    # confluent-kafka needs this; here it follows from the other settings
    del values["sasl_oauthbearer_method"]
    return values


def _check_security(values: Mapping[str, object]) -> None:
    protocol, mechanism = str(values["security_protocol"]), values["sasl_mechanism"]
    if protocol.startswith("SASL"):
        needed: tuple[str, ...] = _OF_TOKENS if mechanism == "OAUTHBEARER" else _OF_PASSWORDS
        if mechanism == "OAUTHBEARER" and values["sasl_oauthbearer_token"] is not None:
            needed = ()
        for name in needed:
            if values[name.replace(".", "_")] is None:
                other = ", or sasl.oauthbearer.token" if needed is _OF_TOKENS else ""
                raise ConfigError(f"{name} is missing: security.protocol={protocol} needs it{other}")
    elif mechanism is not None:
        raise ConfigError(
            f"sasl.mechanism={mechanism} has no effect with "
            f"security.protocol={protocol}: use SASL_PLAINTEXT or SASL_SSL"
        )
    if values["ssl_key_location"] is not None and values["ssl_certificate_location"] is None:
        raise ConfigError("ssl.certificate.location is missing: ssl.key.location needs it")
