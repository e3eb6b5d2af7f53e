"""Settings without an effect are documented as such, and their values are checked all the same."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker, join_share_group

from sharecore.config import (
    BrokerConfig,
    Status,
    find_unserved,
    ignored_keys,
    remarks_on,
)
from sharecore.config.unserved import unserved_keys
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey


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
