"""The options of `format("sharegroup")`, named as users of Spark's Kafka source know them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sharecore.client.java_names import from_java
from sharecore.client.settings import Settings, read_settings
from sharecore.errors import ConfigError
from sharecore.spark.given import split_options

_NAMES = (
    "subscribe",
    "group.id",
    "startingOffsets",
    "maxRecordsPerTrigger",
    "minPartitions",
    "lock.renew",
    "includeHeaders",
    "failOnDataLoss",
    "checkpointLocation",
)
_STARTING = re.compile(r"earliest|latest|by_duration:P\w[\w.]*")
_FIXED = {"share.acknowledgement.mode", "key.deserializer", "value.deserializer"}
_MEMBER_ONLY = {
    "client.rack",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "fetch.wait.max.ms",
    "lease.max.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "prefetch.records",
    "share.acquire.mode",
}
_DEFAULTS = {
    "fetch.max.bytes": "52428800",
    "max.poll.interval.ms": "2147483647",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What a source runs with."""

    topics: tuple[str, ...]
    client: Settings
    member: dict[str, str]
    """The client's settings as they were given, and what the source sets itself."""
    connection: dict[str, str]
    """The client's settings without the group's, for whoever only fetches."""
    starting_offsets: str | None
    records_max: int
    partitions_min: int
    lock_renew: bool
    include_headers: bool
    fail_on_data_loss: bool
    checkpoint: str | None


def read_options(given: Mapping[str, str]) -> Options:
    """Read the options of a source.

    Raises:
        ConfigError: an unknown name, or a missing or invalid value.
    """
    own, settings = split_options(given, _NAMES, "sharegroup")
    for key in sorted(_FIXED & settings.keys()):
        raise ConfigError(f"kafka.{key} cannot be set: the source decides it")
    kafka = _DEFAULTS | from_java(settings, "kafka.")
    if "bootstrap.servers" not in kafka:
        raise ConfigError("kafka.bootstrap.servers is missing")
    group = own.get("group.id", kafka.pop("group.id", None))
    if not group:
        raise ConfigError("group.id is missing: the share group that the query reads as a member of")
    topics = tuple(name.strip() for name in own.get("subscribe", "").split(",") if name.strip())
    if not topics:
        raise ConfigError("subscribe is missing: the topics to read, with commas between them")
    starting = own.get("startingOffsets")
    if starting is not None and not _STARTING.fullmatch(starting):
        raise ConfigError(
            f"startingOffsets={starting!r}: must be earliest, latest or by_duration:PT1H. It is where the "
            "group begins; from then on the broker knows what the group has read"
        )
    records_max = _number("maxRecordsPerTrigger", own.get("maxRecordsPerTrigger", "1000000"))
    renews = _flag("lock.renew", own.get("lock.renew", "true"))
    at_once = str(min(records_max, 1_000_000))
    member = {
        "max.poll.records": at_once,
        # without renewal, the locks of waiting records expire during a long batch, each time using up a
        # delivery
        "prefetch.records": at_once if renews else "0",
        **kafka,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
    }
    return Options(
        topics,
        read_settings(member),
        member,
        {name: value for name, value in kafka.items() if name not in _MEMBER_ONLY},
        starting,
        records_max,
        _number("minPartitions", own.get("minPartitions", "1")),
        renews,
        _flag("includeHeaders", own.get("includeHeaders", "true")),
        _flag("failOnDataLoss", own.get("failOnDataLoss", "true")),
        own.get("checkpointLocation"),
    )


def _number(name: str, text: str) -> int:
    if not text.strip().isdecimal() or not 0 < int(text) < 2**31:
        raise ConfigError(f"{name}={text!r}: must be a whole number from 1 to {2**31 - 1}")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ConfigError(f"{name}={text!r}: must be true or false")
    return text.strip().lower() == "true"
