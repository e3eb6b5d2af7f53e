"""Broker settings that are defaults of topics and groups, or limits for groups."""

from __future__ import annotations

import pytest

from sharecore.config import (
    BrokerConfig,
    GroupConfig,
    TopicConfig,
    broker_keys,
    check_group_config,
    group_keys,
    topic_keys,
)
from sharecore.errors import ConfigError

OF_TOPICS = {
    "log.cleanup.policy": ("cleanup.policy", "compact"),
    "log.cleaner.delete.retention.ms": ("delete.retention.ms", "7"),
    "log.cleaner.min.cleanable.ratio": ("min.cleanable.dirty.ratio", "0.7"),
    "log.cleaner.min.compaction.lag.ms": ("min.compaction.lag.ms", "7"),
    "log.cleaner.max.compaction.lag.ms": ("max.compaction.lag.ms", "7"),
    "log.message.timestamp.type": ("message.timestamp.type", "LogAppendTime"),
    "log.message.timestamp.before.max.ms": ("message.timestamp.before.max.ms", "7"),
    "log.message.timestamp.after.max.ms": ("message.timestamp.after.max.ms", "7"),
    "log.retention.bytes": ("retention.bytes", "7"),
    "log.retention.ms": ("retention.ms", "7"),
    "log.segment.bytes": ("segment.bytes", "7777777"),
    "message.max.bytes": ("max.message.bytes", "7"),
    "min.insync.replicas": ("min.insync.replicas", "7"),
    "compression.type": ("compression.type", "zstd"),
    "compression.gzip.level": ("compression.gzip.level", "7"),
    "compression.zstd.level": ("compression.zstd.level", "7"),
}
OF_GROUPS = {
    "group.consumer.assignment.interval.ms": ("consumer.assignment.interval.ms", "7"),
    "group.consumer.heartbeat.interval.ms": ("consumer.heartbeat.interval.ms", "7777"),
    "group.consumer.session.timeout.ms": ("consumer.session.timeout.ms", "47777"),
    "group.share.assignment.interval.ms": ("share.assignment.interval.ms", "7"),
    "group.share.delivery.count.limit": ("share.delivery.count.limit", "7"),
    "group.share.heartbeat.interval.ms": ("share.heartbeat.interval.ms", "7777"),
    "group.share.partition.max.record.locks": ("share.partition.max.record.locks", "777"),
    "group.share.record.lock.duration.ms": ("share.record.lock.duration.ms", "17777"),
    "group.share.session.timeout.ms": ("share.session.timeout.ms", "47777"),
}
BOUNDS = {
    "group.consumer.min.assignment.interval.ms": ("consumer.assignment.interval.ms", 500),
    "group.consumer.max.assignment.interval.ms": ("consumer.assignment.interval.ms", 2000),
    "group.consumer.min.heartbeat.interval.ms": ("consumer.heartbeat.interval.ms", 4000),
    "group.consumer.max.heartbeat.interval.ms": ("consumer.heartbeat.interval.ms", 6000),
    "group.consumer.min.session.timeout.ms": ("consumer.session.timeout.ms", 44000),
    "group.consumer.max.session.timeout.ms": ("consumer.session.timeout.ms", 46000),
    "group.share.min.assignment.interval.ms": ("share.assignment.interval.ms", 500),
    "group.share.max.assignment.interval.ms": ("share.assignment.interval.ms", 2000),
    "group.share.min.delivery.count.limit": ("share.delivery.count.limit", 4),
    "group.share.max.delivery.count.limit": ("share.delivery.count.limit", 6),
    "group.share.min.heartbeat.interval.ms": ("share.heartbeat.interval.ms", 4000),
    "group.share.max.heartbeat.interval.ms": ("share.heartbeat.interval.ms", 6000),
    "group.share.min.partition.max.record.locks": ("share.partition.max.record.locks", 1500),
    "group.share.max.partition.max.record.locks": ("share.partition.max.record.locks", 2500),
    "group.share.min.record.lock.duration.ms": ("share.record.lock.duration.ms", 20000),
    "group.share.max.record.lock.duration.ms": ("share.record.lock.duration.ms", 40000),
    "group.share.min.session.timeout.ms": ("share.session.timeout.ms", 44000),
    "group.share.max.session.timeout.ms": ("share.session.timeout.ms", 46000),
}


@pytest.mark.parametrize("name", OF_TOPICS)
def test_a_topic_without_the_setting_has_the_brokers(name: str) -> None:
    own, text = OF_TOPICS[name]
    attribute, key = topic_keys()[own]
    broker = BrokerConfig.from_properties({name: text})
    assert getattr(TopicConfig.resolve({}, broker), attribute) == key.parse(text)
    assert getattr(TopicConfig.resolve({}, BrokerConfig()), attribute) != key.parse(text)


@pytest.mark.parametrize("name", OF_GROUPS)
def test_a_group_without_the_setting_has_the_brokers(name: str) -> None:
    own, text = OF_GROUPS[name]
    attribute, key = group_keys()[own]
    broker = BrokerConfig.from_properties({name: text})
    assert getattr(GroupConfig.resolve({}, broker), attribute) == key.parse(text)
    assert getattr(GroupConfig.resolve({}, BrokerConfig()), attribute) != key.parse(text)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_group_chooses_within_the_brokers_bounds(name: str) -> None:
    own, bound = BOUNDS[name]
    broker = BrokerConfig.from_properties({name: str(bound)})
    beyond = bound + (-1 if ".min." in name else 1)
    check_group_config({own: str(bound)}, broker)
    with pytest.raises(ConfigError, match=own.replace(".", r"\.")):
        check_group_config({own: str(beyond)}, broker)


def test_the_lists_are_whole() -> None:
    synonyms = {key.synonym for _, key in (*topic_keys().values(), *group_keys().values())}
    assert synonyms - {None} <= OF_TOPICS.keys() | OF_GROUPS.keys()
    assert {name for name in broker_keys() if ".min." in name or ".max." in name} & {
        f"group.{kind}.{end}.{own.partition('.')[2]}"
        for own, _ in OF_GROUPS.values()
        for kind in ("share", "consumer")
        for end in ("min", "max")
    } <= BOUNDS.keys()
