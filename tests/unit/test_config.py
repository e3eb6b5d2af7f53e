from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharecore.config import (
    BrokerConfig,
    GroupConfig,
    Kind,
    OffsetReset,
    Status,
    TopicConfig,
    broker_keys,
    check_group_config,
    check_topic_config,
    group_keys,
    listeners_of,
    parse_properties,
    read_properties,
    topic_keys,
    unknown_names,
)
from sharecore.config.group import parse_duration_ms
from sharecore.errors import ConfigError

PAST_APACHE = {"group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"}


def broker(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({name.replace("_", "."): text for name, text in properties.items()})


def test_defaults_stand_beside_each_other() -> None:
    config = broker()
    assert config.group_share_partition_max_record_locks == 2000
    assert config.retention_ms == 7 * 24 * 3_600_000
    assert TopicConfig.resolve({}, config) == TopicConfig()
    assert GroupConfig.resolve({}, config) == GroupConfig()


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("num.partitions", "many", "an integer, at least 1"),
        ("num.partitions", "0", "an integer, at least 1"),
        ("num.partitions", "99999999999", "an integer, at least 1"),
        ("num.partitions", "", "an integer, at least 1"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("group.share.delivery.count.limit", "11", "an integer from 2 to 10"),
        ("group.share.max.partition.max.record.locks", "10000001", "an integer from 2000 to 10000000"),
        ("log.cleanup.policy", "delete,shrink", "a list of compact, delete"),
        ("sharecore.durability", "never", "one of fsync, os, bucket"),
        ("log.dirs", "/a,/b", "one path"),
    ],
)
def test_a_bad_value_names_key_value_and_what_is_allowed(name: str, text: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties({name: text})
    assert str(refused.value).startswith(f"{name}={text}: ")
    assert str(refused.value).endswith(f"allowed: {allowed}")


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("share.session.timeout.ms", "0", "Value must be at least 1"),
        ("consumer.session.timeout.ms", "soon", "Not a number of type INT"),
        ("share.renew.acknowledge.enable", "maybe", "Expected value to be either true or false"),
        ("share.paused", "yes", "Expected value to be either true or false"),
        ("share.paused.until.ms", "-1", "Value must be at least 0"),
        ("share.member.max.record.locks", "-1", "Value must be at least 0"),
        ("share.records.per.second", "10000001", "Value must be no more than 10000000"),
        *(
            (
                "share.topic.weights",
                text,
                "The value must be a list of TOPIC:WEIGHT, weights from 1 to 100, each topic once",
            )
            for text in ("jobs", "jobs:0", "jobs:101", "jobs:1,jobs:2", "a b:1", ":3", "jobs:1.5", "jobs:-1")
        ),
        ("share.retry.backoff.ms", "86400001", "Value must be no more than 86400000"),
        ("share.retry.backoff.max.ms", "604800001", "Value must be no more than 604800000"),
        ("share.retry.backoff.multiplier", "0.9", "Value must be at least 1.0"),
        ("share.retry.backoff.multiplier", "NaN", "The value must be a number from 1.0 to 10.0"),
        ("share.retry.backoff.jitter", "-NaN", "The value must be a number from 0.0 to 1.0"),
        ("share.retry.backoff.jitter", "1.1", "Value must be no more than 1.0"),
        ("share.retry.backoff.on", "session", "String must be one of: release, timeout"),
        ("share.retry.backoff.on", "", "String must be one of: release, timeout"),
        ("share.partition.max.waiting", "999", "Value must be at least 1000"),
        ("share.paused.until.ms", "tomorrow", "Not a number of type LONG"),
        ("share.record.lock.keep", "always", "String must be one of: none, connected"),
        ("share.record.lock.keep.max.ms", "604800001", "Value must be no more than 604800000"),
        ("share.breaker.percent", "101", "Value must be no more than 100"),
        ("share.breaker.window.ms", "999", "Value must be at least 1000"),
        ("share.breaker.min.records", "0", "Value must be at least 1"),
        ("share.breaker.pause.ms", "86400001", "Value must be no more than 86400000"),
        (
            "share.isolation.level",
            "serializable",
            "String must be one of: read_committed, read_uncommitted",
        ),
    ],
)
def test_kafkas_tools_are_answered_in_its_words(name: str, text: str, answer: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_group_config({name: text}, broker())
    assert refused.value.answer == f"Invalid value {text} for configuration {name}: {answer}"


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"consumer.session.timeout.ms": "44999"}, "equal to group.consumer.min.session.timeout.ms"),
        ({"consumer.heartbeat.interval.ms": "15001"}, "equal to group.consumer.max.heartbeat.interval.ms"),
        ({"consumer.assignment.interval.ms": "15001"}, "equal to group.consumer.max.assignment.interval.ms"),
    ],
)
def test_consumer_groups_keep_within_the_bounds_of_the_broker(overrides: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        check_group_config(overrides, broker())


@pytest.mark.parametrize(
    "overrides",
    [
        {"share.record.lock.keep.max.ms": "29999"},
        {"share.record.lock.keep.max.ms": "40000", "share.record.lock.duration.ms": "40001"},
    ],
)
def test_locks_are_not_kept_for_less_than_they_last(overrides: dict[str, str]) -> None:
    names = r"share\.record\.lock\.keep\.max\.ms=.*share\.record\.lock\.duration\.ms="
    with pytest.raises(ConfigError, match=names):
        check_group_config({"share.record.lock.keep": "connected", **overrides}, broker())


@pytest.mark.parametrize(
    "overrides",
    [
        {"share.retry.backoff.ms": "300001"},
        {"share.retry.backoff.ms": "1000", "share.retry.backoff.max.ms": "999"},
    ],
)
def test_a_first_wait_longer_than_the_longest_is_refused_by_both_names(overrides: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"share\.retry\.backoff\.ms=.*share\.retry\.backoff\.max\.ms="):
        check_group_config(overrides, broker())


def test_a_consumer_group_has_its_own_settings() -> None:
    own = GroupConfig.resolve({"consumer.session.timeout.ms": "50000"}, broker())
    assert (own.consumer_session_timeout_ms, own.consumer_heartbeat_interval_ms) == (50000, 5000)


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        (
            {"group.consumer.session.timeout.ms": "70000"},
            "group.consumer.max.session.timeout.ms=60000",
        ),
        ({"group.share.record.lock.duration.ms": "10000"}, "group.share.min.record.lock.duration.ms=15000"),
        (
            {"group.share.partition.max.record.locks": "5000"},
            "group.share.max.partition.max.record.locks=4000",
        ),
        ({"group.share.heartbeat.interval.ms": "1000"}, "group.share.min.heartbeat.interval.ms=5000"),
    ],
)
def test_defaults_of_groups_keep_within_their_bounds(properties: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        BrokerConfig.from_properties(properties)


def test_the_in_flight_window_goes_past_apache() -> None:
    names = dict.fromkeys(PAST_APACHE, "10000000")
    assert BrokerConfig.from_properties(names).group_share_max_partition_max_record_locks == 10_000_000


def test_retention_has_three_keys() -> None:
    assert broker(log_retention_hours="1", log_retention_minutes="2", log_retention_ms="3").retention_ms == 3
    assert broker(log_retention_hours="1", log_retention_minutes="2").retention_ms == 120_000
    assert broker(log_retention_hours="-1").retention_ms == -1
    assert TopicConfig.resolve({}, broker(log_retention_hours="1")).retention_ms == 3_600_000
    assert TopicConfig.resolve({"retention.ms": "-1"}, broker()).retention_ms == -1


def test_aliases_give_way_to_the_name_they_stand_for() -> None:
    assert broker(log_dir="/a").data_dir == "/a"
    assert BrokerConfig.from_properties({"log.dirs": "/b", "log.dir": "/a"}).data_dir == "/b"
    assert broker(broker_id="7").node_id == 7


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retention.ms": "soon"}, "retention.ms=soon"),
        ({"cleanup.policy": "keep"}, "cleanup.policy=keep"),
        ({"retention.milliseconds": "1"}, "Unknown topic config name: retention.milliseconds"),
    ],
)
def test_bad_topic_settings(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TopicConfig.resolve(overrides, broker())


def test_group_settings_within_the_brokers_bounds() -> None:
    config = GroupConfig.resolve(
        {"share.auto.offset.reset": "by_duration:PT1H", "share.isolation.level": "read_committed"}, broker()
    )
    assert config.offset_reset == OffsetReset("by_duration", 3_600_000)
    assert config.read_committed
    assert config.share_record_lock_duration_ms == 30_000
    assert (
        GroupConfig.resolve(
            {"share.record.lock.duration.ms": "16000"}, broker()
        ).share_record_lock_duration_ms
        == 16_000
    )


def test_a_group_setting_from_wider_bounds_is_brought_within_todays() -> None:
    wide = broker(group_share_max_partition_max_record_locks="1000000")
    locks = {"share.partition.max.record.locks": "1000000"}
    check_group_config(locks, wide)
    assert GroupConfig.resolve(locks, wide).share_partition_max_record_locks == 1_000_000
    assert GroupConfig.resolve(locks, broker()).share_partition_max_record_locks == 4000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("share.record.lock.duration.ms", "1000", "greater than or equal to group.share.min.record.lock"),
        ("share.record.lock.duration.ms", "60001", "less than or equal to group.share.max.record.lock"),
        ("share.delivery.count.limit", "1", "share.delivery.count.limit=1"),
        ("share.partition.max.record.locks", "4001", "less than or equal to group.share.max.partition"),
        ("share.auto.offset.reset", "by_duration", "by_duration: with an ISO-8601 duration"),
        ("share.auto.offset.reset", "by_duration:1h", "ISO-8601"),
        ("share.auto.offset.reset", "by_duration:-PT1H", "ISO-8601"),
        ("share.auto.offset.reset", "by_duration:PT-1H", "negative"),
        ("share.auto.offset.reset", "none", "share.auto.offset.reset=none"),
        ("share.isolation.level", "serializable", "read_committed"),
        ("share.nonsense", "1", "Unknown group config name: share.nonsense"),
    ],
)
def test_group_settings_that_are_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_group_config({name: text}, broker())


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("PT1H", 3_600_000), ("P2DT3H4M5.678S", 183_845_678), ("pt0.5s", 500), ("PT0S", 0), ("P1D", 86_400_000)],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1H", "PT1X", "P1Y", "PT-5S", "PT1H1H"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"ISO-8601|negative"):
        parse_duration_ms(text)


def test_listeners() -> None:
    config = broker(
        listeners="plaintext://127.0.0.1:0, CONTROLLER://:9093, EXTERNAL://[::1]:9094",
        advertised_listeners="PLAINTEXT://broker.example:19092",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT",
    )
    first, second = listeners_of(config)
    assert (first.host, first.port, first.advertised_host, first.advertised_port) == (
        "127.0.0.1",
        0,
        "broker.example",
        19092,
    )
    assert (second.name, second.host, second.advertised_host) == ("EXTERNAL", "::1", "::1")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"listeners": "localhost:9092"}, "not an address"),
        ({"listeners": "PLAINTEXT://a:99999"}, "not an address"),
        ({"listeners": "INSIDE://a:9092"}, "INSIDE is not in it"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "twice"),
        ({"advertised.listeners": "OTHER://a:1"}, "no such listener"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "cannot connect"),
    ],
)
def test_listeners_that_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        listeners_of(BrokerConfig.from_properties(properties))


def test_property_files_are_read_as_java_does(tmp_path: Path) -> None:
    text = "# comment\n! too\n\n a = 1 \nb:2\nc 3\nd=x\\\n    y\ne=\nf\\ g=t\\tab\\u0041\nw=C:\\\\x\na=4\n"
    assert parse_properties(text) == {
        "a": "4",
        "b": "2",
        "c": "3",
        "d": "xy",
        "e": "",
        "f g": "t\tabA",
        "w": "C:\\x",
    }
    missing, binary = tmp_path / "missing.properties", tmp_path / "binary.properties"
    with pytest.raises(ConfigError) as caught:
        read_properties(missing)
    assert str(caught.value) == f"{missing}: cannot be read: No such file or directory"
    with pytest.raises(ConfigError) as caught:
        read_properties(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"
    binary.write_bytes(b"a=1\nb=\xfc\n")
    with pytest.raises(ConfigError, match=r"binary.properties: cannot be read: line 2 is not UTF-8"):
        read_properties(binary)
    with pytest.raises(ConfigError, match=r"/dev/zero: cannot be read: more than \d+ bytes"):
        read_properties("/dev/zero")


def test_unknown_names_are_told_from_kafkas() -> None:
    names = ["num.partitions", "log.dir", "num.io.threads", "ssl.provider", "num.partitons"]
    assert unknown_names(names) == ["num.partitons"]


def test_changes_while_running() -> None:
    config = broker(num_partitions="3")
    changed = config.with_properties({"log.retention.ms": "5"})
    assert (changed.num_partitions, changed.retention_ms, config.log_retention_ms) == (3, 5, None)
    with pytest.raises(ConfigError, match="nothing would be kept"):
        config.with_properties({"log.retention.ms": "0"})


@pytest.mark.parametrize(
    ("properties", "kept_ms"),
    [
        ({"log.retention.ms": "-2"}, -1),
        ({"log.retention.hours": "-5"}, -1),
        ({"log.retention.hours": "0", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "0", "log.retention.minutes": "0", "log.retention.ms": "1"}, 1),
    ],
)
def test_the_finest_of_three_keys_says_how_long_records_are_kept(
    properties: dict[str, str], kept_ms: int
) -> None:
    assert BrokerConfig.from_properties(properties).retention_ms == kept_ms


@pytest.mark.parametrize(
    ("properties", "allowed"),
    [
        ({"group.share.max.share.sessions": "199"}, "at least group.share.max.size=200"),
        ({"queued.max.request.bytes": "9"}, "at least socket.request.max.bytes=104857600"),
        ({"connections.max.idle.ms": "100"}, "less than connections.max.idle.ms=100"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "more than 1048576 for each"),
        ({"max.connections.per.ip": "0"}, "at least 1"),
        ({"log.retention.hours": "0"}, "at least 1, negative: for ever"),
        ({"group.share.heartbeat.interval.ms": "15001"}, "to group.share.max.heartbeat.interval.ms=15000"),
    ],
)
def test_values_that_cannot_stand_beside_each_other_are_refused(
    properties: dict[str, str], allowed: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties(properties)
    assert str(refused.value).endswith(allowed)


def test_share_groups_have_one_assignor() -> None:
    """group.share.assignors"""
    for name in ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"):
        assert broker(group_share_assignors=name).group_share_assignors == (name,)
    with pytest.raises(ConfigError, match="which is the same"):
        broker(group_share_assignors="uniform")


def test_requests_may_be_larger_than_a_bound_that_nobody_set() -> None:
    assert broker(socket_request_max_bytes="2000000000").socket_request_max_bytes == 2_000_000_000


def test_a_topic_is_held_to_the_brokers_defaults() -> None:
    config = BrokerConfig.from_properties({"log.cleaner.max.compaction.lag.ms": "5"})
    check_topic_config({"min.compaction.lag.ms": "5"}, config)
    with pytest.raises(ConfigError, match="at most 5"):
        check_topic_config({"min.compaction.lag.ms": "6"}, config)


@pytest.mark.parametrize("text", ["1_000", "inf", "nan", "0x1", "", "1,5"])
def test_numbers_are_read_as_java_reads_them(text: str) -> None:
    key = broker_keys()["log.cleaner.io.max.bytes.per.second"][1]
    assert key.parse("1.5e3d") == 1500
    with pytest.raises(ConfigError):
        key.parse(text)


def test_every_key_has_its_own_words() -> None:
    for keys in (broker_keys(), group_keys()):
        for _, key in keys.values():
            assert key.doc.endswith("."), key.name
            if key.default is not None:
                assert key.parse(key.format(key.default) or "") == key.default


@pytest.mark.parametrize("text", ["NaN", "-NaN", "+NaN"])
def test_nan_is_no_number(text: str) -> None:
    doubles = [
        key
        for keys in (broker_keys(), topic_keys(), group_keys())
        for _, key in keys.values()
        if key.kind is Kind.DOUBLE and key.status is Status.WORKS
    ]
    assert len(doubles) >= 4
    for key in doubles:
        with pytest.raises(ConfigError, match=f"{key.name}={re.escape(text)}: not a number"):
            key.parse(text)
