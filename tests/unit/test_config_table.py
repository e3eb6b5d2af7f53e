"""Code, docs and Kafka's own list of names agree; 4.4.0 itself printed that list."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from tests.docs.configuration import TABLE, render

from sharecore.config import ConfigKey, Dynamic, Status, broker_keys, group_keys, topic_keys
from sharecore.config.broker import ALIASES, BrokerConfig
from sharecore.config.unserved import find_unserved, refusals, unserved_keys
from sharecore.errors import ConfigError

FACTS = Path(__file__).parents[1] / "docs/kafka-4.4.0-configs.tsv"
ACCESS_ONLY = {"super.users", "allow.everyone.if.no.acl.found"}
RATES = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Names that 4.4.0 knows without listing them: the authorizer's, and those that exist only at run time."""

OUR_DEFAULTS = {
    "listeners": "localhost, so that nobody is served by accident",
    "log.dirs": "a directory of the user's own",
    "node.id": "so that a broker starts without a file",
    "controller.listener.names": "there are none",
    "listener.security.protocol.map": "the same in another order",
    "queued.max.request.bytes": "memory is bounded",
    "socket.listen.backlog.size": "1,000 workers that start at once do not wait a second",
    "socket.send.buffer.bytes": "fewer turns of the event loop for a large answer",
}
HARMLESS = {
    "controller.quorum.bootstrap.servers": "a file for one node names itself",
    "controller.quorum.voters": "a file for one node names itself",
    "group.consumer.migration.policy": "Kafka's default asks for what is not there",
    "group.coordinator.rebalance.protocols": "with share groups named or not",
    "offsets.topic.replication.factor": "one broker",
    "process.roles": "with the controller or without",
    "share.coordinator.state.topic.min.isr": "one broker",
    "share.coordinator.state.topic.replication.factor": "one broker",
    "ssl.endpoint.identification.algorithm": "off, as an empty text",
    "transaction.state.log.min.isr": "one broker",
    "transaction.state.log.replication.factor": "one broker",
}


def facts(scope: str) -> dict[str, dict[str, str]]:
    with FACTS.open() as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["name"]: row for row in rows if row["scope"] == scope}


def text(default: str) -> str:
    return "" if default == "<null>" else default


def test_the_page_is_what_the_code_declares() -> None:
    assert TABLE.read_text() == render(), "run `make configuration`"


def test_every_name_of_kafkas_is_declared_once() -> None:
    kafkas, declared = facts("broker").keys(), broker_keys().keys() | ALIASES.keys()
    assert not declared & unserved_keys().keys(), "it works now: take it out of config/unserved.py"
    assert sorted(kafkas - declared - unserved_keys().keys()) == []
    assert sorted(unserved_keys().keys() - kafkas - ACCESS_ONLY - RATES) == []
    ours = {name for name in declared - kafkas if not name.startswith("sharecore.")}
    assert sorted(ours - ACCESS_ONLY) == []
    assert topic_keys().keys() == facts("topic").keys()
    own = {name for name, (_, key) in group_keys().items() if key.own}
    assert group_keys().keys() - own == facts("group").keys()


@pytest.mark.parametrize(
    ("scope", "keys"), [("broker", broker_keys()), ("topic", topic_keys()), ("group", group_keys())]
)
def test_types_and_defaults_are_kafkas(scope: str, keys: dict[str, tuple[str, ConfigKey]]) -> None:
    for name, (_, key) in keys.items():
        fact = facts(scope).get(name)
        if fact is None:
            continue
        if name not in OUR_DEFAULTS:
            assert (key.format(key.default) or "") == text(fact["default"]), name
        assert (fact["type"] == key.kind.name) or fact["type"] in ("CLASS", "STRING"), name


def test_what_is_harmless_is_kafkas_default() -> None:
    for name, unserved in unserved_keys().items():
        if unserved.status is Status.REFUSED and name not in HARMLESS | dict.fromkeys(ACCESS_ONLY, ""):
            assert unserved.harmless == text(facts("broker")[name]["default"]), name


@pytest.mark.heavy
def test_what_may_be_altered_at_run_time_may_be_so_in_kafka() -> None:
    for name, unserved in unserved_keys().items():
        if unserved.status is Status.IGNORED and name not in RATES:
            assert unserved.dynamic == (facts("broker")[name]["dynamic"] != "read-only"), name
    for name, (_, key) in broker_keys().items():
        fact = facts("broker").get(name)
        if fact is not None and key.dynamic is not Dynamic.READ_ONLY:
            assert fact["dynamic"] != "read-only", name


REFUSED = {name for name, unserved in unserved_keys().items() if unserved.status is Status.REFUSED}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_key_ends_the_start_and_its_harmless_value_does_not(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}="):
        BrokerConfig.from_properties({name: "one:1,two:2"})
    unserved = unserved_keys()[name]
    for harmless in unserved.harmless.replace("<one>", "1@localhost:9093").split("|"):
        BrokerConfig.from_properties({name: harmless})


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("quota.producer.default", "1024", "quota.producer.default=1024: "),
        ("ssl.made.up", "x", "ssl.made.up=x: "),
        ("config.providers.file.class", "x", "config.providers.file.class=x: "),
        ("delegation.token.secret.key", "hush", "delegation.token.secret.key=***: "),
    ],
)
def test_families_are_refused_and_secrets_are_not_shown(name: str, value: str, shown: str) -> None:
    (line,) = refusals({name: value})
    assert line.startswith(shown)
    assert line.endswith("leave it out")


def test_all_that_is_refused_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties({"config.providers": "file", "cordoned.log.dirs": "/a"})
    assert [line.partition("=")[0] for line in str(refused.value).splitlines()] == [
        "config.providers",
        "cordoned.log.dirs",
    ]


STOCK: dict[str, Any] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "log.dirs": "/var/lib/kafka",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
}


def test_the_settings_of_a_stock_file_stand() -> None:
    BrokerConfig.from_properties(STOCK)
    assert find_unserved("num.io.threads") is not None
    assert find_unserved("num.io.treads") is None
