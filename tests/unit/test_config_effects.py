"""Each accepted setting has an effect, or is documented as having none; its value is read either way."""

from __future__ import annotations

import ast
import logging
from functools import cache
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker, join_share_group

from sharecore.config import (
    BrokerConfig,
    Status,
    broker_keys,
    find_unserved,
    group_keys,
    ignored_keys,
    remarks_on,
    topic_keys,
)
from sharecore.config.unserved import unserved_keys
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey

PACKAGE = Path(__file__).resolve().parents[2] / "python/sharecore"


@cache
def used() -> frozenset[str]:
    """Attributes and strings in the code, without the declarations of settings."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        declares = path.parent.name == "config"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not declares:
                found.add(node.value)
    return frozenset(found)


def follows(attribute: str) -> bool:
    """Return whether code uses a broker setting as the default or limit of a group's or topic's."""
    kind, _, rest = attribute.removeprefix("group_").partition("_")
    name = f"{kind}_{rest.removeprefix('min_').removeprefix('max_')}"
    return attribute.startswith("group_") and name in used()


@pytest.mark.parametrize(
    "name", [name for name, (_, key) in broker_keys().items() if key.status is Status.WORKS]
)
def test_code_acts_on_each_setting_of_the_broker_that_works(name: str) -> None:
    attribute, _ = broker_keys()[name]
    defaults = {key.synonym: own for own, key in (*topic_keys().values(), *group_keys().values())}
    assert attribute in used() or name in used() or defaults.get(name) in used() or follows(attribute), (
        f"{name} has no effect: config/unserved.py is where to say so"
    )


@pytest.mark.parametrize("keys", [topic_keys, group_keys])
def test_code_acts_on_each_setting_of_topics_and_groups_that_works(keys: object) -> None:
    assert callable(keys)
    without = [
        name for name, (own, key) in keys().items() if key.status is Status.WORKS and own not in used()
    ]
    # a group's reset strategy is read as a whole
    assert set(without) <= {"share.auto.offset.reset"}


def test_each_key_without_effect_has_a_reason_and_values() -> None:
    ignored = {name for name, each in unserved_keys().items() if each.status is Status.IGNORED}
    assert ignored == ignored_keys().keys()
    assert all(find_unserved(name) is not None for name in ignored)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("share.coordinator.threads", "0"),
        ("share.coordinator.append.linger.ms", "-5"),
        ("num.io.threads", "abc"),
        ("compression.gzip.level", "10"),
        ("unclean.leader.election.enable", "perhaps"),
        ("offsets.topic.replication.factor", "0"),
        ("transaction.state.log.replication.factor", "40000"),
        ("security.inter.broker.protocol", "CARRIER_PIGEON"),
        ("remote.log.manager.task.retry.jitter", "0.6"),
    ],
)
def test_a_value_that_kafka_would_not_take_is_refused_though_the_key_has_no_effect(
    name: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=f"{name}={text}"):
        BrokerConfig.from_properties({name: text})


def test_a_clusters_settings_start_one_broker() -> None:
    copies = {
        "offsets.topic.replication.factor": "3",
        "share.coordinator.state.topic.replication.factor": "3",
        "share.coordinator.state.topic.min.isr": "2",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "min.insync.replicas": "2",
    }
    BrokerConfig.from_properties(copies)
    told = "\n".join(remarks_on(copies))
    assert all(name in told for name in copies)
    assert remarks_on(dict.fromkeys(copies, "1")) == []


def test_describe_configs_shows_what_was_set_to_no_effect(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, {"num.io.threads": "8", "offsets.topic.replication.factor": "3"}).start()
    resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
    answer = broker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource])
    broker.stop()
    shown = {each.name: each.value for each in answer.results[0].configs}
    assert (shown["num.io.threads"], shown["offsets.topic.replication.factor"]) == ("8", "3")
    assert "num.network.threads" not in shown, "it was not set"


@pytest.mark.parametrize(
    "refused",
    [
        {"group.share.enable": "false"},
        {"group.share.max.groups": "5"},
        {"group.share.assignors": "uniform"},
        {"group.coordinator.rebalance.protocols": "share"},
        {"group.coordinator.rebalance.protocols": "classic,consumer,nonsense"},
    ],
)
def test_what_nothing_acts_on_is_refused(refused: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(refused))):
        BrokerConfig.from_properties(refused)


def test_share_groups_are_off_where_their_protocol_is_not_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    settings = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    broker = RunningBroker(tmp_path, settings).start()
    with pytest.raises(AssertionError, match=r"error_code=35|UNSUPPORTED"):
        join_share_group(broker.connect(), "g", "m", ["t"])
    features = broker.ask(ApiKey.API_VERSIONS, 4, client_software_name="t", client_software_version="1")
    broker.stop()
    assert "share.version" not in {each.name for each in features.finalized_features}
    assert "share groups are refused" in caplog.text
