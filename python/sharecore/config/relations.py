"""Settings of the broker that bound each other, as in Kafka."""

from __future__ import annotations

from collections.abc import Callable, Container

from sharecore.config.keys import Value
from sharecore.errors import ConfigError

_MEMBERSHIP = ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")
_BOUNDED = {
    "consumer": _MEMBERSHIP,
    "share": (*_MEMBERSHIP, "delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks"),
}
_KEYS_OF_A_THREAD = 1024 * 1024
"""Bytes for keys that one cleaner thread must have more than."""


def check_relations(get: Callable[[str], Value], explicit: Container[str]) -> None:
    """Raise ConfigError if two values contradict each other.

    Args:
        get: returns the value of a key by Kafka's name.
        explicit: Kafka's names of the keys that were set.
    """

    def value(name: str) -> float:
        found = get(name)
        assert isinstance(found, int | float), name
        return found

    for kind, keys in _BOUNDED.items():
        for key in keys:
            _within(value, f"group.{kind}.min.{key}", f"group.{kind}.{key}", f"group.{kind}.max.{key}")
        _less(value, f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms")
    _at_least(value, "group.share.max.share.sessions", "group.share.max.size")
    if value("connections.max.idle.ms") >= 0:
        _less(value, "connection.failed.authentication.delay.ms", "connections.max.idle.ms")
    if value("max.connections.per.ip") == 0 and not get("max.connections.per.ip.overrides"):
        raise ConfigError(
            "max.connections.per.ip=0: nobody could connect without max.connections.per.ip.overrides; "
            "allowed: at least 1"
        )
    if "queued.max.request.bytes" in explicit and value("queued.max.request.bytes") > 0:
        _at_least(value, "queued.max.request.bytes", "socket.request.max.bytes")
    if value("sharecore.telemetry.enable") and not get("sharecore.metrics.listener"):
        raise ConfigError(
            "sharecore.telemetry.enable=true: nobody would see what clients push without "
            "sharecore.metrics.listener; allowed: true where that is set"
        )
    keys_bytes, threads = value("log.cleaner.dedupe.buffer.size"), value("log.cleaner.threads")
    if keys_bytes // threads <= _KEYS_OF_A_THREAD:
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size={keys_bytes}: too low for log.cleaner.threads={threads}; "
            f"allowed: more than {_KEYS_OF_A_THREAD} for each"
        )


def _within(value: Callable[[str], float], low: str, name: str, high: str) -> None:
    if not value(low) <= value(name) <= value(high):
        raise ConfigError(
            f"{name}={value(name)}: outside of its bounds; "
            f"allowed: from {low}={value(low)} to {high}={value(high)}"
        )


def _less(value: Callable[[str], float], name: str, high: str) -> None:
    if value(name) >= value(high):
        raise ConfigError(f"{name}={value(name)}: too high; allowed: less than {high}={value(high)}")


def _at_least(value: Callable[[str], float], name: str, low: str) -> None:
    if value(name) < value(low):
        raise ConfigError(f"{name}={value(name)}: too low; allowed: at least {low}={value(low)}")
