"""Configurations of topics, brokers and groups over the wire."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.harness.running import RunningBroker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

TOPIC, BROKER, LOGGERS, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(broker: RunningBroker, kind: int, name: str, *keys: str, version: int = 4) -> Any:
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    answer = broker.ask(
        ApiKey.DESCRIBE_CONFIGS, version, resources=[asked], include_synonyms=True, include_documentation=True
    )
    return answer.results[0]


def value(broker: RunningBroker, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """Return a setting's value and its source."""
    (config,) = describe(broker, kind, name, key).configs
    return config.value, config.config_source


def alter(
    broker: RunningBroker,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    validate_only: bool = False,
) -> int:
    configs = [
        {"name": key, "config_operation": operation, "value": text} for key, operation, text in changes
    ]
    asked = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = broker.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=[asked], validate_only=validate_only
    )
    code: int = answer.responses[0].error_code
    return code


def test_changes_at_a_time_undo_nothing(broker: RunningBroker) -> None:
    """Each change waits for its write, and the next one must not start from older values."""
    names = ["share.heartbeat.interval.ms", "share.session.timeout.ms", "share.record.lock.duration.ms"]
    clients = [broker.connect() for _ in names]
    for client, name in zip(clients, names, strict=True):
        change = {"name": name, "config_operation": SET, "value": value(broker, GROUP, "shared", name)[0]}
        asked = {"resource_type": GROUP, "resource_name": "shared", "configs": [change]}
        client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)
    for client in clients:
        assert client.receive(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1).responses[0].error_code == 0
        client.close()
    own = [value(broker, GROUP, "shared", name)[1] for name in names]
    assert own == [8, 8, 8], "each is the group's"


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_in_every_version(broker: RunningBroker, topic: str, version: int) -> None:
    alter(broker, TOPIC, topic, ("retention.ms", SET, "5000"))
    found = describe(broker, TOPIC, topic, "retention.ms", version=version)
    (config,) = found.configs
    assert (found.error_code, config.name, config.value, config.config_source) == (
        0,
        "retention.ms",
        "5000",
        1,
    )
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("retention.ms", "5000", 1),
    ]
    if version >= 3:
        assert config.config_type == 5
        assert config.documentation.endswith(".")


def test_every_setting_is_described(broker: RunningBroker, topic: str) -> None:
    names = {config.name for config in describe(broker, TOPIC, topic).configs}
    assert {"cleanup.policy", "retention.ms", "max.message.bytes", "min.insync.replicas"} <= names
    for config in describe(broker, BROKER, "1").configs:
        assert config.documentation
        assert config.value is not None or not config.synonyms or config.name == "log.retention.ms"
    assert len(describe(broker, GROUP, "any").configs) == 14


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (BROKER, "-1", ErrorCode.INVALID_REQUEST),
        (BROKER, "1 ", ErrorCode.INVALID_REQUEST),
        (BROKER, "\u00b2", ErrorCode.INVALID_REQUEST),
        (BROKER, "4294967297", ErrorCode.INVALID_REQUEST),
        (BROKER, "0" * 10_000 + "2", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (LOGGERS, "7", ErrorCode.INVALID_REQUEST),
        (99, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_configuration(broker: RunningBroker, kind: int, name: str, code: ErrorCode) -> None:
    assert describe(broker, kind, name).error_code == code


def test_single_keys_change(broker: RunningBroker, topic: str) -> None:
    assert alter(broker, TOPIC, topic, ("retention.ms", SET, "5000"), ("max.message.bytes", SET, "9")) == 0
    assert alter(broker, TOPIC, topic, ("retention.ms", DELETE, None)) == 0
    assert value(broker, TOPIC, topic, "retention.ms") == ("604800000", 5)
    assert value(broker, TOPIC, topic, "max.message.bytes") == ("9", 1)
    assert alter(broker, TOPIC, topic, ("max.message.bytes", SET, "10"), validate_only=True) == 0
    assert value(broker, TOPIC, topic, "max.message.bytes") == ("9", 1)


def test_a_value_shows_as_it_is_read(broker: RunningBroker, topic: str) -> None:
    switch = "errors.deadletterqueue.group.enable"
    assert alter(broker, TOPIC, topic, (switch, SET, " TRUE ")) == 0
    assert value(broker, TOPIC, topic, switch) == ("true", 1)
    makes = "errors.deadletterqueue.auto.create.topics.enable"
    assert alter(broker, BROKER, "", (makes, SET, "True")) == 0
    (config,) = describe(broker, BROKER, "1", makes).configs
    assert (config.value, config.synonyms[0].value) == ("true", "True")
    assert alter(broker, BROKER, "", (makes, DELETE, None)) == 0


def test_lists_grow_and_shrink(broker: RunningBroker, topic: str) -> None:
    for _ in range(2):
        assert alter(broker, TOPIC, topic, ("cleanup.policy", APPEND, "compact")) == 0
    assert value(broker, TOPIC, topic, "cleanup.policy") == ("delete,compact", 1)
    assert alter(broker, TOPIC, topic, ("cleanup.policy", APPEND, "compact,,")) == 0
    assert alter(broker, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert value(broker, TOPIC, topic, "cleanup.policy") == ("compact", 1)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("retention.ms", SET, "abc"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("nonsense", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("cleanup.policy", APPEND, ""), ErrorCode.INVALID_CONFIG),
        (("cleanup.policy", APPEND, "compact,,delete"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_are_refused_change_nothing(
    broker: RunningBroker, topic: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    assert alter(broker, TOPIC, topic, ("max.message.bytes", SET, "9"), change) == code
    assert value(broker, TOPIC, topic, "max.message.bytes") == ("1048588", 5)


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC, "nowhere", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "nowhere", ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "bad name", ("retention.ms", SET, "x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "bad name", ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "", ("retention.ms", SET, "x"), ErrorCode.INVALID_REQUEST),
        (16, "", ("interval.ms", SET, "x"), ErrorCode.INVALID_REQUEST),
        (3, "what", ("what", SET, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused_first(
    broker: RunningBroker, kind: int, name: str, change: tuple[str, int, str], code: ErrorCode
) -> None:
    assert alter(broker, kind, name, change) == code


def test_a_list_names_nothing_twice(broker: RunningBroker, topic: str) -> None:
    assert alter(broker, TOPIC, topic, ("cleanup.policy", SET, "delete,delete")) == 0
    assert value(broker, TOPIC, topic, "cleanup.policy") == ("delete", 1)


def test_what_says_how_long_records_are_kept(broker: RunningBroker) -> None:
    (kept,) = describe(broker, BROKER, "1", "log.retention.ms").configs
    assert kept.value is None
    assert [(each.name, each.value, each.source) for each in kept.synonyms] == [
        ("log.retention.hours", "168", 5)
    ]
    (minutes,) = describe(broker, BROKER, "1", "log.retention.minutes").configs
    assert (minutes.value, minutes.synonyms) == (None, [])


def test_the_same_key_or_resource_twice(broker: RunningBroker, topic: str) -> None:
    twice = (("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    assert alter(broker, TOPIC, topic, *twice) == ErrorCode.INVALID_REQUEST
    asked = {"resource_type": TOPIC, "resource_name": topic, "configs": []}
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked, asked], validate_only=False)
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", range(3))
def test_the_older_way_replaces_everything(broker: RunningBroker, topic: str, version: int) -> None:
    for key, text in (("retention.ms", "9"), ("max.message.bytes", "900")):
        asked = {"resource_type": TOPIC, "resource_name": topic, "configs": [{"name": key, "value": text}]}
        answer = broker.ask(ApiKey.ALTER_CONFIGS, version, resources=[asked], validate_only=False)
        assert answer.responses[0].error_code == 0
    assert value(broker, TOPIC, topic, "retention.ms") == ("604800000", 5)
    assert value(broker, TOPIC, topic, "max.message.bytes") == ("900", 1)


def test_a_group_within_its_bounds(broker: RunningBroker) -> None:
    key = "share.auto.offset.reset"
    assert alter(broker, GROUP, "g", (key, SET, "by_duration:PT1H")) == 0
    assert value(broker, GROUP, "g", key) == ("by_duration:PT1H", 8)
    for key, text in (
        ("share.auto.offset.reset", "by_duration:1h"),
        ("share.record.lock.duration.ms", "1000"),
        ("share.record.lock.duration.ms", "70000"),
        ("share.partition.max.record.locks", "99"),
        ("share.nonsense", "1"),
    ):
        assert alter(broker, GROUP, "g", (key, SET, text)) == ErrorCode.INVALID_CONFIG
    assert alter(broker, GROUP, "", ("share.auto.offset.reset", SET, "latest")) == ErrorCode.INVALID_REQUEST
    assert value(broker, GROUP, "other", "share.auto.offset.reset") == ("latest", 5)


def test_a_broker_changes_while_it_runs(broker: RunningBroker, topic: str) -> None:
    key = "log.retention.ms"
    assert alter(broker, BROKER, "1", (key, SET, "5000")) == 0
    assert alter(broker, BROKER, "", (key, SET, "6000")) == 0
    assert value(broker, BROKER, "1", key) == ("5000", 2)
    assert value(broker, BROKER, "", key) == ("6000", 3)
    assert value(broker, TOPIC, topic, "retention.ms") == ("5000", 2)
    assert alter(broker, BROKER, "1", (key, DELETE, None)) == 0
    assert value(broker, BROKER, "1", key) == ("6000", 3)
    assert alter(broker, BROKER, "", (key, DELETE, None)) == 0
    assert value(broker, TOPIC, topic, "retention.ms") == ("604800000", 5)


@pytest.mark.parametrize("name", ["01", "+1", "\u0661"])
def test_a_broker_is_named_by_any_text_of_its_number(broker: RunningBroker, name: str) -> None:
    assert describe(broker, BROKER, name).configs
    assert alter(broker, BROKER, name, ("log.retention.ms", SET, "5000")) == 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("1", ("num.partitions", "5")),
        ("1", ("nonsense", "5")),
        ("1", ("log.retention.ms", "x")),
        ("9", ("log.retention.ms", "5")),
        ("x", ("log.retention.ms", "5")),
        ("1", ("max.connections", "0")),
        ("", ("max.connection.creation.rate", "0")),
        ("", ("listener.name.plaintext.max.connections", "0")),
    ],
)
def test_changes_of_a_broker_that_are_refused(
    broker: RunningBroker, name: str, change: tuple[str, str]
) -> None:
    assert alter(broker, BROKER, name, (change[0], SET, change[1])) == ErrorCode.INVALID_REQUEST


def test_what_has_a_configuration(broker: RunningBroker, topic: str) -> None:
    alter(broker, GROUP, "listed", ("share.auto.offset.reset", SET, "earliest"))
    everything = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[]).config_resources
    assert {("listed", GROUP), ("1", BROKER), (topic, TOPIC)} <= {tuple(each) for each in everything}
    groups = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[GROUP]).config_resources
    assert {each.resource_type for each in groups} == {GROUP}
    refused = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[99])
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 0).config_resources == []


def test_a_consumer_group_has_settings_of_its_own(broker: RunningBroker, topic: str) -> None:
    """Otherwise those that the broker was started with, which cannot be altered while it runs."""
    key, brokers_key = "consumer.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"
    group = f"consumers-of-{topic}"

    def interval(member: str) -> int:
        answer = broker.connect().ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=group,
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=5000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        assert answer.error_code == 0, answer.error_message
        told: int = answer.heartbeat_interval_ms
        return told

    assert interval("a") == 5000
    assert value(broker, GROUP, group, key) == ("5000", 5)
    assert alter(broker, GROUP, group, (key, SET, "6000")) == 0
    assert interval("b") == 6000
    assert value(broker, GROUP, group, key) == ("6000", 8)
    assert alter(broker, GROUP, group, (key, SET, "15001")) == ErrorCode.INVALID_CONFIG
    assert (
        alter(broker, GROUP, group, ("consumer.session.timeout.ms", SET, "60001")) == ErrorCode.INVALID_CONFIG
    )
    assert alter(broker, GROUP, group, (key, DELETE, None)) == 0
    assert interval("c") == 5000
    assert alter(broker, BROKER, "1", (brokers_key, SET, "7000")) == ErrorCode.INVALID_REQUEST


def test_what_has_no_effect_is_kept_and_shown(broker: RunningBroker, topic: str) -> None:
    assert value(broker, TOPIC, topic, "segment.jitter.ms") == ("0", 5)
    assert value(broker, TOPIC, topic, "index.interval.bytes") == ("4096", 5)
    assert not describe(broker, TOPIC, topic, "internal.segment.bytes").configs
    assert alter(broker, TOPIC, topic, ("segment.jitter.ms", SET, "60000")) == 0
    assert value(broker, TOPIC, topic, "segment.jitter.ms") == ("60000", 1)
    assert alter(broker, TOPIC, topic, ("segment.jitter.ms", SET, "soon")) == ErrorCode.INVALID_CONFIG
    assert alter(broker, BROKER, "", ("num.io.threads", SET, "3")) == 0
    assert value(broker, BROKER, "", "num.io.threads") == ("3", 3)
    assert alter(broker, BROKER, "", ("num.io.threads", DELETE, None)) == 0


@pytest.mark.parametrize(
    ("kind", "name", "key", "text", "code"),
    [
        (TOPIC, "", "remote.storage.enable", "true", ErrorCode.INVALID_CONFIG),
        (TOPIC, "", "compression.type", "brotli", ErrorCode.INVALID_CONFIG),
        (GROUP, "any", "streams.num.standby.replicas", "1", ErrorCode.INVALID_CONFIG),
        (GROUP, "any", "errors.deadletterqueue.topic.name", "__dead", ErrorCode.INVALID_CONFIG),
        (BROKER, "", "compression.type", "brotli", ErrorCode.INVALID_REQUEST),
        (BROKER, "", "queued.max.requests", "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused(
    broker: RunningBroker, topic: str, kind: int, name: str, key: str, text: str, code: ErrorCode
) -> None:
    assert alter(broker, kind, name or topic, (key, SET, text)) == code
    assert not [each for each in describe(broker, kind, name or topic, key).configs if each.value == text]


def test_a_default_of_more_replicas_than_brokers_makes_no_topic(tmp_path: Path) -> None:
    three = RunningBroker(tmp_path, {"default.replication.factor": "3"}).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": -1}
    created = three.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    wanted = [{"name": "t"}]
    found = three.ask(ApiKey.METADATA, 9, topics=wanted, allow_auto_topic_creation=True)
    three.stop()
    assert created.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert found.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_levels_of_loggers_change_while_the_broker_runs(broker: RunningBroker) -> None:
    node, name = "1", "sharecore.network"
    inherited = value(broker, LOGGERS, node, name)
    assert value(broker, LOGGERS, node, "sharecore.broker") == inherited
    try:
        assert alter(broker, LOGGERS, node, (name, SET, "TRACE"), validate_only=True) == 0
        assert value(broker, LOGGERS, node, name) == inherited
        assert alter(broker, LOGGERS, node, (name, SET, "TRACE")) == 0
        assert value(broker, LOGGERS, node, name) == ("TRACE", 6)
        assert logging.getLogger(name).isEnabledFor(5)
        # all or none
        both = (name, SET, "ERROR"), ("no.such", SET, "INFO")
        assert alter(broker, LOGGERS, node, *both) == ErrorCode.INVALID_CONFIG
        assert value(broker, LOGGERS, node, name) == ("TRACE", 6)
        assert alter(broker, LOGGERS, node, ("sharecore", SET, "ERROR")) == 0
        assert value(broker, LOGGERS, node, "sharecore.broker") == ("ERROR", 6)
    finally:
        # Kafka's tools send an empty value, its clients null
        assert alter(broker, LOGGERS, node, (name, DELETE, "")) == 0
        assert alter(broker, LOGGERS, node, ("sharecore", DELETE, None)) == 0
    assert value(broker, LOGGERS, node, name) == inherited


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("1", ("sharecore", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", ("sharecore", SET, "info"), ErrorCode.INVALID_CONFIG),
        ("1", ("asyncio", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", SUBTRACT, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", ("root", SET, None), ErrorCode.INVALID_REQUEST),
        ("77", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", ("what", APPEND, ""), ErrorCode.INVALID_REQUEST),
        ("0", ("what", APPEND, ""), ErrorCode.INVALID_REQUEST),
        ("77", ("what", APPEND, ""), ErrorCode.INVALID_REQUEST),
    ],
)
def test_levels_that_loggers_are_not_given(
    broker: RunningBroker, name: str, change: tuple[str, int, str | None], code: int
) -> None:
    assert alter(broker, LOGGERS, name, change) == code
