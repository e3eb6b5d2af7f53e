"""A topic's configuration: its own settings, else the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from sharecore.config.broker import BrokerConfig
from sharecore.config.keys import LONG_MAX, ConfigKey, Kind, Status, Value, changed, keys_of, setting
from sharecore.config.topic_unserved import UnservedTopicSettings
from sharecore.config.topics import (
    CLEANUP_POLICIES,
    COMPRESSION_TYPES,
    GZIP_LEVEL,
    TIMESTAMP_TYPES,
    ZSTD_LEVEL,
    check_gzip_level,
)
from sharecore.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TopicConfig(UnservedTopicSettings):
    """The settings of one topic; a field's name with dots is Kafka's name of the key."""

    cleanup_policy: tuple[str, ...] = setting(
        Kind.LIST,
        ("delete",),
        "Cleanup of old records: delete, compact, or both.",
        choices=CLEANUP_POLICIES,
        synonym="log.cleanup.policy",
    )
    compression_type: str = setting(
        Kind.STRING,
        "producer",
        "Compression of stored batches; producer: keep the producer's.",
        choices=COMPRESSION_TYPES,
        synonym="compression.type",
    )
    compression_gzip_level: int = setting(
        Kind.INT, -1, GZIP_LEVEL, low=-1, high=9, check=check_gzip_level, synonym="compression.gzip.level"
    )
    compression_zstd_level: int = setting(
        Kind.INT, 3, ZSTD_LEVEL, low=-131072, high=22, synonym="compression.zstd.level"
    )
    errors_deadletterqueue_group_enable: bool = setting(
        Kind.BOOLEAN, False, "Whether share groups may write dead-letter records to this topic."
    )
    delete_retention_ms: int = setting(
        Kind.LONG,
        86400000,
        "Retention time of tombstones in compacted topics.",
        low=0,
        synonym="log.cleaner.delete.retention.ms",
    )
    min_cleanable_dirty_ratio: float = setting(
        Kind.DOUBLE,
        0.5,
        "Minimum fraction of a log that is new since its last compaction.",
        low=0,
        high=1,
        synonym="log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms: int = setting(
        Kind.LONG,
        0,
        "Minimum age of a record before it is compacted.",
        low=0,
        synonym="log.cleaner.min.compaction.lag.ms",
    )
    max_compaction_lag_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Maximum age of an uncompacted record.",
        low=1,
        synonym="log.cleaner.max.compaction.lag.ms",
    )
    max_message_bytes: int = setting(
        Kind.INT, 1048588, "Maximum size of a record batch.", low=0, synonym="message.max.bytes"
    )
    message_timestamp_type: str = setting(
        Kind.STRING,
        "CreateTime",
        "Whether a record keeps its producer's timestamp or gets the broker's.",
        choices=TIMESTAMP_TYPES,
        synonym="log.message.timestamp.type",
    )
    message_timestamp_before_max_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "How far a record's timestamp may be in the past.",
        low=0,
        synonym="log.message.timestamp.before.max.ms",
    )
    message_timestamp_after_max_ms: int = setting(
        Kind.LONG,
        3600000,
        "How far a record's timestamp may be in the future.",
        low=0,
        synonym="log.message.timestamp.after.max.ms",
    )
    min_insync_replicas: int = setting(
        Kind.INT,
        1,
        "Replicas that acks=all waits for; a topic here has one.",
        low=1,
        synonym="min.insync.replicas",
        status=Status.IGNORED,
    )
    retention_bytes: int = setting(
        Kind.LONG, -1, "Maximum size of a partition; negative: unlimited.", synonym="log.retention.bytes"
    )
    retention_ms: int = setting(
        Kind.LONG, 604800000, "Retention time of records; -1: forever.", low=-1, synonym="log.retention.ms"
    )
    segment_bytes: int = setting(
        Kind.INT,
        1073741824,
        "Size of the tail of a compacted topic that is exempt from compaction.",
        low=1048576,
        synonym="log.segment.bytes",
    )
    segment_ms: int = setting(
        Kind.LONG,
        604800000,
        "Age of records in a compacted topic's tail that are exempt from compaction.",
        low=1,
    )

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> TopicConfig:
        """Return a topic's settings over the broker's defaults; raise ConfigError as `parse_topic_config`
        does.

        Those that have no effect are left out: what an older version kept of them must not end a start.
        """
        served = {
            name: text
            for name, text in overrides.items()
            if name not in topic_keys() or topic_keys()[name][1].status is Status.WORKS
        }
        return changed(_broker_defaults(broker), parse_topic_config(served))


@cache
def topic_keys() -> dict[str, tuple[str, ConfigKey]]:
    """Every key of a topic: Kafka's name to the attribute of `TopicConfig` and the key."""
    return keys_of(TopicConfig)


def parse_topic_config(overrides: Mapping[str, str]) -> dict[str, Value]:
    """Return a topic's own settings by attribute.

    Raises:
        ConfigError: a name that no topic has, or a value that is not allowed.
    """
    values = {}
    for name, text in overrides.items():
        known = topic_keys().get(name)
        if known is None:
            raise ConfigError(f"Unknown topic config name: {name}")
        values[known[0]] = known[1].parse(text)
    return values


def check_topic_config(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise ConfigError where a topic's settings are not allowed, by themselves or over the broker's."""
    config = changed(_broker_defaults(broker), parse_topic_config(overrides))
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise ConfigError(f"min.compaction.lag.ms={low}: too high; allowed: at most {high}")


@lru_cache(maxsize=8)
def _broker_defaults(broker: BrokerConfig) -> TopicConfig:
    values: dict[str, Value] = {}
    for attribute, key in topic_keys().values():
        if key.synonym == "log.retention.ms":
            values[attribute] = broker.retention_ms
        elif key.synonym is not None:
            values[attribute] = broker.value(key.synonym)
    return changed(TopicConfig(), values)
