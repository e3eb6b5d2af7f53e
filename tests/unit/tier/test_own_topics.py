"""Settings of the tier's own topics that cause data loss are detected and corrected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.tier.backend import TierBackend
from sharecore.tier.settings.own_topics import find_wrong, oversized
from sharecore.tier.settings.topic import topics_of
from sharecore.upstream import Administration

CONFIG = BrokerConfig.from_properties({"sharecore.tier.state.topic": "state"})
SETTINGS = "state.settings"
DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "1",
}
"""Of a topic created manually."""


class Topics:
    """The cluster's answers about both topics (`upstream.Administration`).

    Attributes:
        refused: the error when a topic is altered.
        untold: the error when the settings topic is described.
    """

    def __init__(self, **changed: Mapping[str, str]) -> None:
        made = {name: DEFAULTS | settings for name, _, _, settings in topics_of(CONFIG)}
        self.settings = {
            name: {**settings, **changed.get(name.removeprefix("state.") or name, {})}
            for name, settings in made.items()
        }
        self.refused: KafkaError | None = None
        self.untold: KafkaError | None = None

    async def topic_configs(self, name: str) -> dict[str, str | None]:
        if self.untold is not None and name == SETTINGS:
            raise self.untold
        return dict(self.settings[name])

    async def set_topic_configs(self, name: str, values: Mapping[str, str]) -> None:
        if self.refused is not None:
            raise self.refused
        self.settings[name].update(values)


def found(topics: Topics) -> list[tuple[str, str]]:
    return [(each.topic, each.name) for each in asyncio.run(find_wrong(topics, CONFIG))]


def backend(topics: Topics) -> TierBackend:
    made = TierBackend()
    made._config, made._admin, made._said = CONFIG, cast(Administration, topics), set()
    return made


def test_what_a_node_makes_is_right() -> None:
    assert found(Topics()) == []


@pytest.mark.parametrize(
    ("topic", "name", "value"),
    [
        ("state", "cleanup.policy", "compact"),
        ("state", "cleanup.policy", "compact,delete"),
        ("state", "retention.ms", "604800000"),
        ("state", "retention.bytes", "1073741824"),
        ("state", "max.message.bytes", "1000"),
        ("state", "min.insync.replicas", "1"),
        ("state", "unclean.leader.election.enable", "true"),
        (SETTINGS, "cleanup.policy", "delete"),
        (SETTINGS, "cleanup.policy", "compact,delete"),
        (SETTINGS, "max.message.bytes", "1000"),
        (SETTINGS, "min.insync.replicas", "1"),
        (SETTINGS, "unclean.leader.election.enable", "true"),
    ],
)
def test_what_must_not_stay_is_found(topic: str, name: str, value: str) -> None:
    topics = Topics()
    topics.settings[topic][name] = value
    assert found(topics) == [(topic, name)]


def test_settings_that_a_cluster_does_not_tell_are_taken_for_right() -> None:
    topics = Topics()
    topics.settings = {"state": {}, SETTINGS: {}}
    assert found(topics) == []


def test_a_node_sets_right_what_it_may_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    topics = Topics()
    topics.settings["state"] |= {"retention.ms": "604800000", "min.insync.replicas": "1"}
    topics.settings[SETTINGS]["cleanup.policy"] = "delete"
    node = backend(topics)
    asyncio.run(node._check_topics())
    assert topics.settings["state"]["retention.ms"] == "-1"
    assert topics.settings[SETTINGS]["cleanup.policy"] == "compact"
    assert found(topics) == [("state", "min.insync.replicas")], "that is for an operator to judge"
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == 3
    assert any("retention.ms is 604800000" in each and "it was set to -1" in each for each in said)
    # every hour: unchanged problems are not logged again, new changes are corrected
    asyncio.run(node._look_at_topics())
    assert len(caplog.records) == 3
    topics.settings["state"]["retention.ms"] = "1000"
    asyncio.run(node._look_at_topics())
    assert topics.settings["state"]["retention.ms"] == "-1"
    assert len(caplog.records) == 4


def test_a_node_refuses_a_topic_that_loses_what_is_needed_and_that_it_may_not_alter() -> None:
    topics = Topics()
    topics.refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "give AlterConfigs")
    topics.settings["state"]["max.message.bytes"] = "1000"
    asyncio.run(backend(topics)._check_topics())
    topics.settings["state"]["retention.ms"] = "604800000"
    with pytest.raises(ConfigError) as raised:
        asyncio.run(backend(topics)._check_topics())
    assert "retention.ms is 604800000; it must be -1" in str(raised.value)
    assert "give AlterConfigs" in str(raised.value)


def test_a_topic_that_is_altered_while_nodes_run_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    topics: Any = Topics()
    topics.refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "give AlterConfigs")
    node = backend(topics)
    asyncio.run(node._check_topics())
    topics.settings["state"] |= {"retention.bytes": "1000", "cleanup.policy": "compact"}
    for _ in range(3):
        asyncio.run(node._look_at_topics())
    assert [each.levelno for each in caplog.records] == [logging.ERROR] * 2


def test_a_compacted_state_topic_is_left_to_repair() -> None:
    topics = Topics()
    topics.settings["state"]["cleanup.policy"] = "compact"
    with pytest.raises(ConfigError, match=r"cleanup\.policy upstream is compact; allowed: delete"):
        asyncio.run(backend(topics)._check_topics())
    assert topics.settings["state"]["cleanup.policy"] == "compact"


def test_who_may_not_describe_the_settings_topic_goes_on_without() -> None:
    topics = Topics()
    topics.untold = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "give DescribeConfigs")
    assert found(topics) == []


def test_records_of_the_state_topic_may_hold_all_that_is_in_flight() -> None:
    locks = {"group.share.max.partition.max.record.locks": "200000"}
    config = BrokerConfig.from_properties({"sharecore.tier.state.topic": "state"} | locks)
    (_, _, _, made), _ = topics_of(config)
    assert int(made["max.message.bytes"]) > 200_000 * 20
    topics = Topics()
    wrong = asyncio.run(find_wrong(cast(Administration, topics), config))
    assert [(each.topic, each.name, each.wanted) for each in wrong] == [
        ("state", "max.message.bytes", made["max.message.bytes"])
    ]
    topics.settings["state"]["max.message.bytes"] = made["max.message.bytes"]
    assert asyncio.run(find_wrong(cast(Administration, topics), config)) == []


@pytest.mark.parametrize(
    ("locks", "bytes_upstream"), [("2000", ""), ("5000000", ""), ("10000000", "=201052672")]
)
def test_state_that_no_request_to_the_cluster_holds_by_default_is_told(
    locks: str, bytes_upstream: str
) -> None:
    given = {"group.share.max.partition.max.record.locks": locks}
    text = oversized(BrokerConfig.from_properties(given))
    assert bool(text) == bool(bytes_upstream)
    assert (f"socket.request.max.bytes{bytes_upstream}" in text) == bool(text), text
