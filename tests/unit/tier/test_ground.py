"""What a node makes upstream, and what it keeps in memory, as it is told."""

from __future__ import annotations

from typing import cast

from sharecore.config import BrokerConfig
from sharecore.protocol import ApiKey
from sharecore.tier.apis import OFFERED
from sharecore.tier.ground import TierGround, topics_of
from sharecore.upstream import Administration


def test_what_a_node_makes_upstream() -> None:
    given = {
        "sharecore.tier.state.topic": "mine",
        "sharecore.tier.slots": "7",
        "sharecore.tier.replication.factor": "2",
        "sharecore.tier.min.insync.replicas": "1",
    }
    state, settings = topics_of(BrokerConfig.from_properties(given))
    assert state[:3] == ("mine", 7, 2)
    assert state[3]["cleanup.policy"] == "delete"
    assert state[3]["retention.ms"] == "-1"
    assert settings[:3] == ("mine.settings", 1, 2)
    assert settings[3] == {"min.insync.replicas": "1", "cleanup.policy": "compact"}


def test_what_is_kept_in_memory() -> None:
    given = {"sharecore.tier.cache.bytes": "2000000", "sharecore.tier.ahead.bytes": "70000"}
    ground = TierGround()
    sources = ground.sources(BrokerConfig.from_properties(given), cast(Administration, None))
    assert (sources.budget.max_bytes, sources.ahead_bytes) == (2_000_000, 70_000)


def test_settings_of_the_connection_lose_their_prefix() -> None:
    given = {"sharecore.upstream.bootstrap.servers": "a:1", "sharecore.upstream.client.id": "me"}
    config = BrokerConfig.from_properties(given)
    assert config.upstream_settings == {"bootstrap.servers": "a:1", "client.id": "me"}


def test_records_are_produced_and_fetched_elsewhere() -> None:
    assert OFFERED[ApiKey.PRODUCE].module == "produce_elsewhere"
    assert OFFERED[ApiKey.FETCH].module == "fetch_elsewhere"
    for api in (ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.CREATE_TOPICS, ApiKey.END_TXN):
        assert api not in OFFERED
