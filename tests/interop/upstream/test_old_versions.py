"""The same cluster, spoken to as one that offers no more than Redpanda of early 2025 does: no topic ids."""

from __future__ import annotations

import asyncio

import pytest
from tests.harness.aio import in_loop
from tests.harness.batches import values_of
from tests.harness.broker import Broker
from tests.interop.upstream.connected import append, connected
from tests.interop.upstream.test_fetching import Taken, written
from tests.interop.upstream.test_group import Node

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey, calls
from sharecore.upstream import Administration, Fetcher, Topic, cluster, made_id
from sharecore.upstream.apis import SPOKEN

HIGHEST = {
    ApiKey.PRODUCE: 7,
    ApiKey.FETCH: 11,
    ApiKey.LIST_OFFSETS: 4,
    ApiKey.METADATA: 7,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 5,
    ApiKey.HEARTBEAT: 3,
    ApiKey.LEAVE_GROUP: 3,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.INIT_PRODUCER_ID: 3,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 3,
}


@pytest.fixture(autouse=True)
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    low = {key: (lowest, HIGHEST.get(key, highest)) for key, (lowest, highest) in SPOKEN.items()}
    monkeypatch.setattr(cluster, "SPOKEN", low)


@in_loop
async def test_records_are_written_read_and_fetched_by_name(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        writers = await written(upstream, name, 2)
        topic = upstream.metadata.get(name)
        assert isinstance(topic, Topic)
        assert (topic.topic_id, topic.has_id) == (made_id(upstream.metadata.cluster_id, name), False)
        assert await append(writers[1], b"a", b"b") is None
        admin = Administration(upstream)
        fetched = await admin.read(name, 1, 0, 1 << 20)
        assert values_of(fetched.records) == [(0, b"a"), (1, b"b")]
        fetcher, taken = Fetcher(upstream, committed=True, max_wait_ms=50), Taken()
        fetcher.subscribe(name, 1, 0, 1 << 20, taken)
        await taken.until_end(2)
        assert await append(writers[1], b"c") is None
        await taken.until_end(3)
        assert (await admin.topic_configs(name))["cleanup.policy"] == "delete"
        message = {"topic_names": [name], "timeout_ms": 5_000}
        await upstream.request(0, calls.DELETE_TOPICS, message)
        upstream.stale()
        assert await taken.until_failed() is ErrorCode.UNKNOWN_TOPIC_ID
        await fetcher.close()


@in_loop
async def test_members_join_and_leave(existing: Broker, name: str) -> None:
    async with connected(existing) as here, connected(existing) as there:
        await written(here, name, 1)
        first = Node(here, name, "a", instance_id="1", confirmed_by=name)
        second = Node(there, name, "b", confirmed_by=name)
        await first.sees(b"a b")
        await second.sees(b"a b")
        await asyncio.sleep(0.3)
        assert second.membership.lease_from_ms is not None
        await first.membership.leave()
        await second.sees(b"b")
        await second.membership.leave()
