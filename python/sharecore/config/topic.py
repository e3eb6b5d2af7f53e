"""A topic's configuration: its own settings, else the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from sharecore.config.broker import BrokerConfig
from sharecore.config.keys import LONG_MAX, ConfigKey, Kind, keys_of, setting
from sharecore.config.topics import CLEANUP_POLICIES, COMPRESSION_TYPES, TIMESTAMP_TYPES
from sharecore.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TopicConfig:
    """The settings of one topic; a field's name with dots is Kafka's name of the key."""

    cleanup_policy: tuple[str, ...] = setting(
        Kind.LIST,
        ("delete",),
        "What happens to old records: delete, compact, or both.",
        choices=CLEANUP_POLICIES,
        synonym="log.cleanup.policy",
    )
    compression_type: str = setting(
        Kind.STRING,
        "producer",
        "Compression of what is kept; batches stay as producers compressed them.",
        choices=COMPRESSION_TYPES,
        synonym="compression.type",
    )
    delete_retention_ms: int = setting(
        Kind.LONG,
        86400000,
        "Time that tombstones of a compacted topic are kept.",
        low=0,
        synonym="log.cleaner.delete.retention.ms",
    )
    min_cleanable_dirty_ratio: float = setting(
        Kind.DOUBLE,
        0.5,
        "Share of a log that must be new since it was compacted last before it is again.",
        low=0,
        high=1,
        synonym="log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms: int = setting(
        Kind.LONG,
        0,
        "Age below which records are not compacted.",
        low=0,
        synonym="log.cleaner.min.compaction.lag.ms",
    )
    max_compaction_lag_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Age above which records are compacted however few they are.",
        low=1,
        synonym="log.cleaner.max.compaction.lag.ms",
    )
    max_message_bytes: int = setting(
        Kind.INT, 1048588, "Largest record batch that is taken.", low=0, synonym="message.max.bytes"
    )
    message_timestamp_type: str = setting(
        Kind.STRING,
        "CreateTime",
        "Whether a record keeps its producer's time or gets the broker's.",
        choices=TIMESTAMP_TYPES,
        synonym="log.message.timestamp.type",
    )
    message_timestamp_before_max_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "How far a record's time may lie in the past.",
        low=0,
        synonym="log.message.timestamp.before.max.ms",
    )
    message_timestamp_after_max_ms: int = setting(
        Kind.LONG,
        3600000,
        "How far a record's time may lie in the future.",
        low=0,
        synonym="log.message.timestamp.after.max.ms",
    )
    min_insync_replicas: int = setting(
        Kind.INT,
        1,
        "Replicas that acks=all waits for; one broker is one replica.",
        low=1,
        synonym="min.insync.replicas",
    )
    retention_bytes: int = setting(
        Kind.LONG, -1, "Bytes that a partition keeps; -1: no bound.", low=-1, synonym="log.retention.bytes"
    )
    retention_ms: int = setting(
        Kind.LONG, 604800000, "Time that records are kept; -1: for ever.", low=-1, synonym="log.retention.ms"
    )
    segment_bytes: int = setting(
        Kind.INT,
        1073741824,
        "Bytes that retention lets go of at a time, at most.",
        low=1048576,
        synonym="log.segment.bytes",
    )
    segment_ms: int = setting(
        Kind.LONG,
        604800000,
        "Time after which records of a compacted topic no longer count as being written.",
        low=1,
    )

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> TopicConfig:
        """A topic's settings over the broker's defaults; raises ConfigError as `parse_topic_config` does."""
        return replace(_broker_defaults(broker), **parse_topic_config(overrides))


@cache
def topic_keys() -> dict[str, tuple[str, ConfigKey]]:
    """Every key of a topic: Kafka's name to the attribute of `TopicConfig` and the key."""
    return keys_of(TopicConfig)


def parse_topic_config(overrides: Mapping[str, str]) -> dict[str, Any]:
    """A topic's own settings by attribute.

    Raises:
        ConfigError: a name that no topic has, or a value that is not allowed.
    """
    values = {}
    for name, text in overrides.items():
        known = topic_keys().get(name)
        if known is None:
            if name in UNSUPPORTED_TOPIC_KEYS:
                continue
            raise ConfigError(f"Unknown topic config name: {name}")
        values[known[0]] = known[1].parse(text)
    return values


@lru_cache(maxsize=8)
def _broker_defaults(broker: BrokerConfig) -> TopicConfig:
    values: dict[str, Any] = {}
    for attribute, key in topic_keys().values():
        if key.synonym == "log.retention.ms":
            values[attribute] = broker.retention_ms
        elif key.synonym is not None:
            values[attribute] = broker.value(key.synonym)
    return TopicConfig(**values)


UNSUPPORTED_TOPIC_KEYS = frozenset(
    [
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "segment.index.bytes",
        "segment.jitter.ms",
        "unclean.leader.election.enable",
        "errors.deadletterqueue.group.enable",
    ]
)
"""Kafka's names of what this store does in another way, or has no need of: kept and shown, without effect."""
