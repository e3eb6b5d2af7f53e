"""Single requests to an existing cluster: transient errors are retried, permanent ones reported."""

from __future__ import annotations

from typing import Any

from tests.unit.client.virtual import in_virtual_time
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream import LATEST, Administration, ListedOffset


def listed(code: int, offset: int = -1) -> dict[str, Any]:
    part = {"partition_index": 0, "error_code": code, "timestamp": -1, "offset": offset, "leader_epoch": 5}
    return {"topics": [{"name": "t", "partitions": [part]}]}


@in_virtual_time
async def test_a_broker_that_has_not_heard_of_a_new_topic_yet_is_asked_again() -> None:
    cluster = Cluster()
    cluster.create("t")
    upstream = cluster.upstream()
    await upstream.start()
    cluster.says[ApiKey.LIST_OFFSETS] += [listed(3), listed(3), listed(0, 7)]
    found = await Administration(upstream).list_offsets({("t", 0): LATEST})
    assert found == {("t", 0): ListedOffset(7, -1, 5)}
    await upstream.close()


@in_virtual_time
async def test_a_topic_that_is_deleted_meanwhile_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.create("t")
    upstream = cluster.upstream()
    await upstream.start()
    admin = Administration(upstream)
    await upstream.topics(["t"])
    cluster.topics.clear()
    cluster.says[ApiKey.LIST_OFFSETS] += [listed(3)] * 100
    began = upstream.clock.monotonic_ms()
    (found,) = (await admin.list_offsets({("t", 0): LATEST})).values()
    assert isinstance(found, KafkaError)
    assert found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert upstream.clock.monotonic_ms() - began < 5_000
    await upstream.close()


@in_virtual_time
async def test_a_topic_that_is_still_being_deleted_is_made_once_it_is_gone() -> None:
    """With ZooKeeper it blocks a new one for a while, and no broker lists it."""
    cluster = Cluster()
    upstream = cluster.upstream()
    await upstream.start()

    def made(_: object) -> dict[str, Any]:
        cluster.create("t")
        return {"topics": [{"name": "t", "topic_id": cluster.ids["t"], "error_code": 0}]}

    there = {"topics": [{"name": "t", "error_code": ErrorCode.TOPIC_ALREADY_EXISTS}]}
    cluster.says[ApiKey.CREATE_TOPICS] += [there, there, made]
    assert await Administration(upstream).create_topic("t", 1, 1, {}) is True
    assert len(cluster.bodies(ApiKey.CREATE_TOPICS)) == 3
    await upstream.close()
