"""Topic configurations, applied to their logs."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.config import BrokerConfig, TopicConfig
from sharecore.sharestate.keys import STATE_TOPIC
from sharecore.sharestate.records import state_bytes_max
from sharecore.storage import Configs, ResourceType, Topic, Topics
from sharecore.storage.topics import TopicChange

_NUMBERS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Compression types, numbered as in batch attributes."""
_USUAL = -1
_BEYOND_LOCKS = 1_000_000
"""Records beyond the window limit, as the record batch that reaches it is acquired whole."""


class TopicConfigs:
    """Resolve topic configurations, and apply them to the logs.

    Args:
        topics: the topics.
        configs: the topics' own settings.
        broker_config: returns the broker's current configuration.
    """

    def __init__(self, topics: Topics, configs: Configs, broker_config: Callable[[], BrokerConfig]) -> None:
        self._topics = topics
        self._configs = configs
        self._broker_config = broker_config
        topics.on_change(self._topic_changed)
        configs.on_change(self._settings_changed)
        self.apply_all()

    def get(self, name: str) -> TopicConfig:
        """Return a topic's configuration; without own settings, the broker's defaults."""
        return TopicConfig.resolve(self._configs.get(ResourceType.TOPIC, name), self._broker_config())

    def apply_all(self) -> None:
        """Apply the configuration to every log, such as after a change of the broker's defaults."""
        for topic in self._topics:
            self._apply(topic)

    def _apply(self, topic: Topic) -> None:
        config = self.get(topic.name)
        for log in topic.partitions:
            log.configure(
                max_batch_bytes=self._max_batch_bytes(topic.name, config),
                log_append_time=config.message_timestamp_type == "LogAppendTime",
                before_max_ms=config.message_timestamp_before_max_ms,
                after_max_ms=config.message_timestamp_after_max_ms,
                needs_keys="compact" in config.cleanup_policy,
                compression=_compression(config),
            )

    def _max_batch_bytes(self, topic: str, config: TopicConfig) -> int:
        """Return the maximum batch size; state of share partitions may exceed the limit of client records."""
        if topic != STATE_TOPIC:
            return config.max_message_bytes
        locks = self._broker_config().group_share_max_partition_max_record_locks
        return max(config.max_message_bytes, state_bytes_max(locks + _BEYOND_LOCKS))

    def _topic_changed(self, change: TopicChange, topic: Topic) -> None:
        if change is not TopicChange.DELETED:
            self._apply(topic)

    def _settings_changed(self, kind: ResourceType, name: str) -> None:
        topic = self._topics.get(name) if kind == ResourceType.TOPIC else None
        if topic is not None:
            self._apply(topic)


def _compression(config: TopicConfig) -> tuple[int, int | None] | None:
    """Return number and level of a topic's compression; None to keep batches as produced."""
    number = _NUMBERS.get(config.compression_type)
    if number is None:
        return None
    levels = {"gzip": config.compression_gzip_level, "zstd": config.compression_zstd_level}
    level = levels.get(config.compression_type, _USUAL)
    return number, None if level == _USUAL else level
