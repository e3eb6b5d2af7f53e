"""A group's configuration: its own settings within the broker's bounds, else the broker's defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from sharecore.config.broker import BrokerConfig
from sharecore.config.dead_letters import GroupDeadLetterSettings
from sharecore.config.group_unserved import UnservedGroupSettings
from sharecore.config.keys import ConfigKey, Kind, Value, changed, keys_of, setting
from sharecore.config.queues import QueueSettings
from sharecore.errors import ConfigError

_DURATION = re.compile(
    r"(?i)P(?:(?P<days>[+-]?\d+)D)?(?:T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?"
    r"(?:(?P<seconds>[+-]?\d+)(?:[.,](?P<fraction>\d{0,9}))?S)?)?"
)
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO-8601 duration of days and less, such as PT1H30M or P2DT0.5S.

    Raises:
        ValueError: it is none, or it is negative.
    """
    match = _DURATION.fullmatch(text)
    if match is None or not any(match[unit] for unit in _MS) or text[-1] in "Tt":
        raise ValueError(f"{text!r} is not an ISO-8601 duration")
    duration_ms = sum(int(match[unit] or 0) * ms for unit, ms in _MS.items())
    fraction_ms = int((match["fraction"] or "").ljust(3, "0")[:3])
    duration_ms += -fraction_ms if (match["seconds"] or "").startswith("-") else fraction_ms
    if duration_ms < 0:
        raise ValueError(f"{text!r} is negative")
    return duration_ms


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a share partition starts that has no state: `latest`, `earliest`, or records younger than a
    duration.

    Args:
        strategy: latest, earliest or by_duration.
        duration_ms: with by_duration, how far back from now.
    """

    strategy: str
    duration_ms: int = 0

    @classmethod
    def parse(cls, text: str) -> OffsetReset:
        """Read `share.auto.offset.reset`; raise ValueError."""
        if text in ("latest", "earliest"):
            return cls(text)
        strategy, colon, duration = text.partition(":")
        if strategy != "by_duration" or not colon:
            raise ValueError("unknown")
        return cls(strategy, parse_duration_ms(duration))


def _check_reset(text: str) -> None:
    """Allow latest, earliest, or by_duration: with an ISO-8601 duration behind it, as in by_duration:PT1H"""
    OffsetReset.parse(text)


@dataclass(frozen=True, kw_only=True)
class GroupConfig(GroupDeadLetterSettings, QueueSettings, UnservedGroupSettings):
    """The settings of one group, of whichever type; a field's name with dots is Kafka's name of the key."""

    consumer_assignment_interval_ms: int = setting(
        Kind.INT,
        1000,
        "Minimum time between two assignments of a consumer group.",
        low=0,
        synonym="group.consumer.assignment.interval.ms",
    )
    consumer_heartbeat_interval_ms: int = setting(
        Kind.INT,
        5000,
        "Heartbeat interval of members of consumer groups.",
        low=1,
        synonym="group.consumer.heartbeat.interval.ms",
    )
    consumer_session_timeout_ms: int = setting(
        Kind.INT,
        45000,
        "Members of consumer groups without a heartbeat for this long are removed.",
        low=1,
        synonym="group.consumer.session.timeout.ms",
    )
    share_assignment_interval_ms: int = setting(
        Kind.INT,
        1000,
        "Minimum time between two assignments.",
        low=0,
        synonym="group.share.assignment.interval.ms",
    )
    share_auto_offset_reset: str = setting(
        Kind.STRING,
        "latest",
        "Where a share partition without state starts.",
        check=_check_reset,
        refusal="Invalid value `{text}` for configuration {name}. The value must be either 'earliest', "
        "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    )
    share_delivery_count_limit: int = setting(
        Kind.INT,
        5,
        "Delivery limit: a record is archived after this many failed deliveries.",
        low=2,
        synonym="group.share.delivery.count.limit",
    )
    share_heartbeat_interval_ms: int = setting(
        Kind.INT,
        5000,
        "Heartbeat interval of members of share groups.",
        low=1,
        synonym="group.share.heartbeat.interval.ms",
    )
    share_isolation_level: str = setting(
        Kind.STRING,
        "read_uncommitted",
        "Whether records of open and aborted transactions are delivered too.",
        choices=("read_committed", "read_uncommitted"),
    )
    share_partition_max_record_locks: int = setting(
        Kind.INT,
        2000,
        "Maximum number of records in flight in a share partition.",
        low=100,
        synonym="group.share.partition.max.record.locks",
    )
    share_record_lock_duration_ms: int = setting(
        Kind.INT,
        30000,
        "Duration of an acquisition lock.",
        low=1000,
        synonym="group.share.record.lock.duration.ms",
    )
    share_renew_acknowledge_enable: bool = setting(
        Kind.BOOLEAN, True, "Whether members may renew their locks."
    )
    share_session_timeout_ms: int = setting(
        Kind.INT,
        45000,
        "Members of share groups without a heartbeat for this long are removed.",
        low=1,
        synonym="group.share.session.timeout.ms",
    )

    @property
    def offset_reset(self) -> OffsetReset:
        """`share.auto.offset.reset`, read."""
        return OffsetReset.parse(self.share_auto_offset_reset)

    @property
    def read_committed(self) -> bool:
        """Whether records of open and aborted transactions are kept back."""
        return self.share_isolation_level == "read_committed"

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> GroupConfig:
        """Return a group's settings over the broker's defaults.

        A setting that was made under other bounds of the broker is brought within today's.

        Raises:
            ConfigError: a name that no group has, or a value that is not allowed.
        """
        values = _parse(overrides)
        for attribute, value in values.items():
            bounds = _bounds(attribute, broker)
            if bounds is not None and isinstance(value, int):
                values[attribute] = min(max(value, bounds[1]), bounds[3])
        return changed(_broker_defaults(broker), values)


def check_group_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise ConfigError where a group's settings are not allowed, by themselves or by the broker's
    bounds.
    """
    values = _parse(overrides)
    for attribute, value in values.items():
        bounds = _bounds(attribute, broker)
        if bounds is None or not isinstance(value, int):
            continue
        low_name, low, high_name, high = bounds
        name = attribute.replace("_", ".")
        if value < low:
            raise ConfigError(f"{name} must be greater than or equal to {low_name}")
        if value > high:
            raise ConfigError(f"{name} must be less than or equal to {high_name}")
    config = changed(_broker_defaults(broker), values)
    config.check_dead_letters()
    config.check_queue()
    for kind in ("consumer", "share"):
        session, heartbeat = f"{kind}_session_timeout_ms", f"{kind}_heartbeat_interval_ms"
        if getattr(config, heartbeat) >= getattr(config, session):
            names = session.replace("_", "."), heartbeat.replace("_", ".")
            raise ConfigError(f"{names[0]} must be greater than {names[1]}")


@cache
def group_keys() -> dict[str, tuple[str, ConfigKey]]:
    """Every key of a group: Kafka's name to the attribute of `GroupConfig` and the key."""
    return keys_of(GroupConfig)


def _parse(overrides: Mapping[str, str]) -> dict[str, Value]:
    values = {}
    for name, text in overrides.items():
        known = group_keys().get(name)
        if known is None:
            raise ConfigError(f"Unknown group config name: {name}")
        values[known[0]] = known[1].parse(text)
    return values


def _bounds(attribute: str, broker: BrokerConfig) -> tuple[str, int, str, int] | None:
    """Return the broker's keys that bound a group's setting, with their values: low name, low, high name,
    high.
    """
    kind, _, setting_name = attribute.partition("_")
    low, high = f"group_{kind}_min_{setting_name}", f"group_{kind}_max_{setting_name}"
    if not hasattr(broker, low):
        return None
    return low.replace("_", "."), getattr(broker, low), high.replace("_", "."), getattr(broker, high)


@lru_cache(maxsize=8)
def _broker_defaults(broker: BrokerConfig) -> GroupConfig:
    defaults = {
        attribute: broker.value(key.synonym) for attribute, key in group_keys().values() if key.synonym
    }
    return changed(GroupConfig(), defaults)
