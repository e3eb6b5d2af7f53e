"""The objects that a node creates upstream, and keeps in memory, according to its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from sharecore.broker.coordinators.groups import OFFSETS_TOPIC
from sharecore.clock import SystemClock
from sharecore.config import BrokerConfig
from sharecore.partition.predecessors import Predecessors
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.tier.apis import OFFERED
from sharecore.tier.backend import TierBackend
from sharecore.tier.settings.topic import Send, topics_of
from sharecore.tier.slots import duties as duties_module
from sharecore.tier.slots import slot_of_partition
from sharecore.tier.slots.duties import SlotDuties
from sharecore.tier.upstream.topics import id_under
from sharecore.upstream import Administration
from sharecore.upstream import Topic as UpstreamTopic
from sharecore.upstream import TopicChange as Change

TOPIC = UUID(int=7)


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
    backend = TierBackend()
    sources = backend.sources(
        BrokerConfig.from_properties(given), cast(Administration, None), cast(Send, None)
    )
    assert (sources.budget.max_bytes, sources.ahead_bytes) == (2_000_000, 70_000)


@pytest.mark.parametrize("partition", [4, 1000, 2**31 - 1, -1, -5, -(2**31)])
def test_a_partition_that_no_topic_has_lies_in_some_slot(partition: int) -> None:
    """Clients ask for any number, also of the state topic, whose partitions are the slots themselves."""
    backend = TierBackend()
    backend._slots = [cast(Any, None)] * 4
    backend._state_ids = {TOPIC}
    for topic_id in (TOPIC, UUID(int=8)):
        assert 0 <= backend.route(SharePartitionKey("g", topic_id, partition), 4) < 4
    assert [backend.route(SharePartitionKey("g", TOPIC, slot), 4) for slot in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("change", [Change.RECREATED, Change.CREATED])
def test_a_state_topic_that_was_made_anew_has_its_slots_under_its_new_ids(change: Change) -> None:
    backend, topic_id = TierBackend(), UUID(int=8)
    backend._config = BrokerConfig.from_properties({})
    backend._slots = [cast(Any, None)] * 16
    state = backend._config.sharecore_tier_state_topic
    asked = [UUID(int=7), topic_id]
    for each in asked:
        backend._note_state_topic(change, UpstreamTopic(state, each, True, (), False))
        backend._note_state_topic(change, UpstreamTopic("another", UUID(int=9), True, (), False))
        backend._note_state_topic(Change.DELETED, UpstreamTopic(state, UUID(int=9), True, (), False))
        for known in (each, id_under(OFFSETS_TOPIC, each)):
            slots = [backend.route(SharePartitionKey("g", known, slot), 16) for slot in range(16)]
            assert slots == list(range(16))
    former = [backend.route(SharePartitionKey("g", asked[0], slot), 16) for slot in range(16)]
    assert former == [slot_of_partition(asked[0], slot, 16) for slot in range(16)]


class Leading:
    """A share-partition leader that holds records for a while, and the services around it."""

    def __init__(self, settled_after_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._until = loop.time() + settled_after_s
        self._time = loop.time
        self.resting: list[int] = []

    @property
    def holds(self) -> bool:
        return self._time() < self._until

    def rest(self, slot: int, holds: Callable[[UUID, int], bool]) -> list[Leading]:
        assert holds(TOPIC, slot - slot_of_partition(TOPIC, 0, 4) + 4)
        assert not holds(TOPIC, slot - slot_of_partition(TOPIC, 0, 4) + 5)
        self.resting.append(slot)
        return [self]


async def _look() -> None:
    """Do nothing: there is nothing new."""


@pytest.mark.parametrize(("settled_after_s", "takes_s"), [(0.0, 0.0), (0.1, 0.1), (5.0, 0.3)])
def test_members_are_waited_for_but_not_for_ever(settled_after_s: float, takes_s: float) -> None:
    config = BrokerConfig.from_properties({"sharecore.tier.drain.timeout.ms": "300"})

    async def test() -> None:
        share = Leading(settled_after_s)
        drain_ms = config.sharecore_tier_drain_timeout_ms
        slot_of = partial(slot_of_partition, slots=4)
        duties = SlotDuties(
            cast(Any, None), cast(Any, share), SystemClock(), slot_of, lambda group_id: 0, drain_ms, _look
        )
        began = asyncio.get_running_loop().time()
        await duties.rest(2)
        assert share.resting == [2]
        assert takes_s <= asyncio.get_running_loop().time() - began + 0.001 < takes_s + 2

    asyncio.run(test())


def test_state_is_asked_for_where_slots_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything recorded by groups of a slot taken over, and everything in a slot that another node took
    over.
    """
    monkeypatch.setattr(duties_module, "_CHECK_S", 0.01)
    asked: list[Callable[[SharePartitionKey], bool]] = []
    groups = SimpleNamespace(check_states=asked.append)
    predecessors = Predecessors(SystemClock())
    partitions = SimpleNamespace(predecessors=predecessors)
    share = SimpleNamespace(take_over=lambda slot: None, groups=groups, partitions=partitions)
    records = SimpleNamespace(records=SimpleNamespace(load_partition=lambda slot: None))

    async def test() -> None:
        slot_of = partial(slot_of_partition, slots=4)
        duties = SlotDuties(
            cast(Any, records),
            cast(Any, share),
            SystemClock(),
            slot_of,
            {"a": 1, "b": 2}.__getitem__,
            300,
            _look,
        )
        duties.take_over(slot_of(TOPIC, 1), was_released=False)
        key = SharePartitionKey("a", TOPIC, 1)
        assert predecessors.since_ms(key) is not None
        duties.take_over(slot_of(TOPIC, 1), was_released=True)
        assert predecessors.since_ms(key) is None
        duties.take_over(1, was_released=False)
        duties.moved(slot_of(TOPIC, 3))
        await asyncio.sleep(0.05)
        duties.moved(0)
        duties.close()
        await asyncio.sleep(0.05)

    asyncio.run(test())
    (doubted,) = asked
    names = [(group, index) for group in "ab" for index in range(4)]
    found = [name for name in names if doubted(SharePartitionKey(name[0], TOPIC, name[1]))]
    assert found == [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 3)]


def test_settings_of_the_connection_lose_their_prefix() -> None:
    given = {"sharecore.upstream.bootstrap.servers": "a:1", "sharecore.upstream.client.id": "me"}
    config = BrokerConfig.from_properties(given)
    assert config.upstream_settings == {"bootstrap.servers": "a:1", "client.id": "me"}


def test_records_are_produced_and_fetched_elsewhere() -> None:
    assert OFFERED[ApiKey.PRODUCE].function == "refuse_produce"
    assert OFFERED[ApiKey.FETCH].function == "refuse_fetch"
    for api in (ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.CREATE_TOPICS, ApiKey.END_TXN):
        assert api not in OFFERED
