"""Raw fetches: sessions, room, moving brokers, and changed logs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.harness.batches import headers_of
from tests.unit.client.virtual import in_virtual_time
from tests.unit.upstream.cluster import OLD, Cluster, Log, topic_of

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream import Administration, Fetched, Fetcher, Truncated, Upstream
from sharecore.upstream.apis import VERSIONS

ROOM = 100_000


class Taken:
    """A sink that records."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.answers: list[Fetched] = []
        self.errors: list[KafkaError] = []

    def fetched(self, fetched: Fetched) -> None:
        self.answers.append(fetched)
        self.offsets += [header["base_offset"] for header in headers_of(fetched.records)]

    def failed(self, error: KafkaError) -> None:
        self.errors.append(error)


async def fetching(cluster: Cluster, **more: Any) -> tuple[Upstream, Fetcher]:
    upstream = cluster.upstream()
    await upstream.start()
    await upstream.topics(cluster.topics)
    return upstream, Fetcher(upstream, **{"committed": False, **more})


async def ended(upstream: Upstream, fetcher: Fetcher) -> None:
    await fetcher.close()
    await upstream.close()


def fetches(cluster: Cluster) -> list[list[tuple[int, int]]]:
    """Return partition and offset of each fetch."""
    return [
        [(part.partition, part.fetch_offset) for topic in body.topics for part in topic.partitions]
        for body in cluster.bodies(ApiKey.FETCH)
    ]


@in_virtual_time
async def test_a_session_names_only_what_has_changed() -> None:
    cluster = Cluster()
    cluster.create("a", 3)
    upstream, fetcher = await fetching(cluster)
    taken = [Taken() for _ in range(3)]
    for index, sink in enumerate(taken):
        fetcher.subscribe("a", index, 0, ROOM, sink)
    await asyncio.sleep(0.1)
    cluster.append("a", 1, 2)
    await asyncio.sleep(0.1)
    assert fetches(cluster) == [[(0, 0), (1, 0), (2, 0)], [(1, 2)]]
    assert [sink.offsets for sink in taken] == [[], [0, 1], []]
    assert taken[1].answers[-1].high_watermark == 2
    assert [body.session_epoch for body in cluster.bodies(ApiKey.FETCH)] == [0, 1]
    await asyncio.sleep(5)
    assert fetches(cluster)[2:] == [[]] * len(fetches(cluster)[2:])
    await ended(upstream, fetcher)


@in_virtual_time
async def test_nothing_is_fetched_without_room_and_a_paused_partition_leaves_the_session() -> None:
    cluster = Cluster()
    cluster.create("a", 2, end=10)
    upstream, fetcher = await fetching(cluster)
    first, second = Taken(), Taken()
    one = fetcher.subscribe("a", 0, 0, 200, first)
    fetcher.subscribe("a", 1, 10, ROOM, second)
    await asyncio.sleep(0.1)
    assert 1 <= len(first.offsets) <= 4
    assert one.room <= 0
    before = list(first.offsets)
    await asyncio.sleep(2)
    assert first.offsets == before
    forgotten = [
        body.forgotten_topics_data for body in cluster.bodies(ApiKey.FETCH) if body.forgotten_topics_data
    ]
    assert [topic[0].partitions for topic in forgotten] == [[0]]
    one.allow(ROOM)
    await asyncio.sleep(0.1)
    assert first.offsets == list(range(10))
    await ended(upstream, fetcher)


@in_virtual_time
async def test_what_has_room_again_does_not_wait_behind_the_session() -> None:
    cluster = Cluster()
    cluster.create("a", 2, end=3)
    upstream, fetcher = await fetching(cluster, max_wait_ms=500)
    idle, busy = Taken(), Taken()
    fetcher.subscribe("a", 0, 3, ROOM, idle)
    await asyncio.sleep(0.1)
    began = asyncio.get_running_loop().time()
    fetcher.subscribe("a", 1, 0, ROOM, busy)
    while len(busy.offsets) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert asyncio.get_running_loop().time() - began < 0.05
    cluster.append("a", 1)
    await asyncio.sleep(0.01)
    assert busy.offsets == [0, 1, 2, 3]
    await asyncio.sleep(2)
    # the session has both from its next request
    count = len(cluster.bodies(ApiKey.FETCH))
    await asyncio.sleep(5)
    assert len(cluster.bodies(ApiKey.FETCH)) - count == 10
    cluster.append("a", 0)
    cluster.append("a", 1)
    await asyncio.sleep(0.01)
    assert (idle.offsets, busy.offsets) == ([3], [0, 1, 2, 3, 4])
    await ended(upstream, fetcher)


@in_virtual_time
async def test_an_answer_for_another_offset_is_dropped_after_seek() -> None:
    cluster = Cluster()
    cluster.create("a", 1, end=10)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    cluster.says[ApiKey.FETCH].append(0.2)
    one = fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    one.seek(7, ROOM)
    await asyncio.sleep(1)
    assert taken.offsets == [7, 8, 9]
    one.close()
    cluster.append("a")
    await asyncio.sleep(1)
    assert taken.offsets == [7, 8, 9]
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_lost_session_is_opened_anew() -> None:
    cluster = Cluster()
    cluster.create("a", 2)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(1)
    cluster.sessions.clear()
    await asyncio.sleep(1)
    cluster.append("a")
    await asyncio.sleep(0.1)
    assert taken.offsets == [0]
    assert [body.session_epoch for body in cluster.bodies(ApiKey.FETCH)].count(0) == 2
    await ended(upstream, fetcher)


@pytest.mark.parametrize("stopped", [False, True])
@in_virtual_time
async def test_a_new_leader_is_fetched_from(stopped: bool) -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a", 1, end=2)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    if stopped:
        cluster.brokers[0].stop()
    log = cluster.topics["a"][0]
    log.leader, log.epoch = 1, log.epoch + 1
    cluster.append("a")
    await asyncio.sleep(3)
    assert taken.offsets == [0, 1, 2]
    assert taken.errors == []
    assert len(cluster.bodies(ApiKey.OFFSET_FOR_LEADER_EPOCH)) == 1
    await ended(upstream, fetcher)


@pytest.mark.parametrize("versions", [VERSIONS, OLD])
@in_virtual_time
async def test_a_leader_is_looked_for_until_there_is_one(versions: dict[ApiKey, tuple[int, int]]) -> None:
    cluster = Cluster(nodes=2, versions=versions)
    cluster.create("a", 1, end=2)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    log = cluster.topics["a"][0]
    log.leader, log.epoch = -1, log.epoch + 1
    count = len(cluster.bodies(ApiKey.METADATA))
    await asyncio.sleep(30)
    assert 25 <= len(cluster.bodies(ApiKey.METADATA)) - count <= 60
    log.leader, log.epoch = 1, log.epoch + 1
    cluster.append("a")
    await asyncio.sleep(1.5)
    assert taken.offsets == [0, 1, 2]
    count = len(cluster.bodies(ApiKey.METADATA))
    await asyncio.sleep(30)
    assert len(cluster.bodies(ApiKey.METADATA)) == count
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_leader_that_was_not_among_the_brokers_is_fetched_from_once_it_is() -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a", 1, end=2, leader=1)
    away = cluster.brokers.pop()
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(30)
    assert taken.offsets == []
    cluster.brokers.append(away)
    await asyncio.sleep(1.5)
    assert taken.offsets == [0, 1]
    await ended(upstream, fetcher)


@in_virtual_time
async def test_nobody_looks_for_the_leader_of_what_has_no_room() -> None:
    cluster = Cluster()
    cluster.create("a", 1, end=2, leader=-1)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    one = fetcher.subscribe("a", 0, 0, 0, taken)
    count = len(cluster.bodies(ApiKey.METADATA))
    await asyncio.sleep(30)
    assert len(cluster.bodies(ApiKey.METADATA)) == count
    cluster.topics["a"][0].leader = 0
    one.allow(ROOM)
    await asyncio.sleep(0.1)
    assert taken.offsets == [0, 1]
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_leader_that_lost_records_is_told_of() -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a", 1, end=10)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    one = fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    log = cluster.topics["a"][0]
    log.epochs[log.epoch] = 6
    log.leader, log.epoch, log.end = 1, log.epoch + 1, 20
    await asyncio.sleep(3)
    (error,) = taken.errors
    assert isinstance(error, Truncated)
    assert error.end_offset == 6
    assert taken.offsets == list(range(10))
    one.seek(6, ROOM)
    await asyncio.sleep(1)
    assert taken.offsets[10:] == list(range(6, 20))
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_leader_that_lost_records_is_told_of_though_they_were_not_fetched_yet() -> None:
    """They were announced: a reader waiting for them would wait for long."""
    cluster = Cluster(nodes=2)
    cluster.create("a", 1, end=10)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    one = fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    one.seek(3, 0)
    log = cluster.topics["a"][0]
    log.epochs[log.epoch] = 6
    log.leader, log.epoch, log.end = 1, log.epoch + 1, 8
    await upstream.refreshed()
    one.allow(ROOM)
    await asyncio.sleep(3)
    assert [error.end_offset for error in taken.errors if isinstance(error, Truncated)] == [6]
    assert taken.offsets == list(range(10))
    one.seek(3, ROOM)
    await asyncio.sleep(1)
    assert taken.offsets[10:] == list(range(3, 8))
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_leader_that_lost_what_was_read_apart_is_told_of() -> None:
    """Nothing was fetched yet, and by now there are other records at the next offset."""
    cluster = Cluster(nodes=2)
    cluster.create("a", 1, end=10)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    one = fetcher.subscribe("a", 0, 10, 0, taken)
    read = await Administration(upstream).read("a", 0, 0, ROOM)
    one.was_read(read.leader_epoch)
    log = cluster.topics["a"][0]
    assert (read.end, read.leader_epoch) == (10, log.epoch)
    log.epochs[log.epoch] = 6
    log.leader, log.epoch, log.end = 1, log.epoch + 1, 20
    await upstream.refreshed()
    one.allow(ROOM)
    await asyncio.sleep(3)
    assert [error.end_offset for error in taken.errors if isinstance(error, Truncated)] == [6]
    assert taken.offsets == []
    await ended(upstream, fetcher)


@in_virtual_time
async def test_offsets_that_are_not_there_end_the_fetching_until_a_seek() -> None:
    cluster = Cluster()
    cluster.create("a", 1, start=5, end=8)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    one = fetcher.subscribe("a", 0, 2, ROOM, taken)
    await asyncio.sleep(1)
    assert [error.code for error in taken.errors] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    count = len(cluster.bodies(ApiKey.FETCH))
    await asyncio.sleep(2)
    assert len(cluster.bodies(ApiKey.FETCH)) == count
    one.seek(5, ROOM)
    await asyncio.sleep(1)
    assert taken.offsets == [5, 6, 7]
    assert taken.answers[-1].log_start_offset == 5
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_topic_that_was_made_again_is_another_one() -> None:
    cluster = Cluster()
    cluster.create("a", 2, end=3)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    one = fetcher.subscribe("a", 1, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    cluster.create("a", 1, end=9)
    await asyncio.sleep(3)
    assert taken.offsets == [0, 1, 2]
    assert [error.code for error in taken.errors] == [ErrorCode.UNKNOWN_TOPIC_ID]
    one.close()
    again = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, again)
    await asyncio.sleep(1)
    assert again.offsets == list(range(9))
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_follower_is_fetched_from_as_long_as_it_is_one() -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a", 1, end=3, replica=1)
    upstream, fetcher = await fetching(cluster, rack="b")
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    assert taken.offsets == [0, 1, 2]
    asked = [each for each in cluster.asked if each.api is ApiKey.FETCH]
    assert [each.node for each in asked[:2]] == [0, 1]
    assert {each.body.rack_id for each in asked} == {"b"}
    cluster.topics["a"][0].replica = -1
    cluster.append("a")
    await asyncio.sleep(2)
    assert taken.offsets == [0, 1, 2, 3]
    assert [each.node for each in cluster.asked if each.api is ApiKey.FETCH][-1] == 0
    await ended(upstream, fetcher)


@in_virtual_time
async def test_topics_without_ids_are_fetched_by_name() -> None:
    cluster = Cluster(versions=OLD)
    cluster.create("a", 1, end=3)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    assert taken.offsets == [0, 1, 2]
    (asked,) = [topic for body in cluster.bodies(ApiKey.FETCH)[:1] for topic in body.topics]
    assert topic_of(asked) == "a"
    await ended(upstream, fetcher)


@in_virtual_time
async def test_a_right_that_is_missing_is_told_with_what_to_do() -> None:
    cluster = Cluster()
    cluster.topics["a"] = [Log(broken=29)]
    cluster.create("b")
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("b", 0, 0, ROOM, taken)
    cluster.topics["b"][0].broken = 29
    await asyncio.sleep(1)
    assert "give the user of this node Read on topic b" in str(taken.errors[0])
    await ended(upstream, fetcher)


@pytest.mark.parametrize("offered", [None, (0, 2)])
@in_virtual_time
async def test_where_epochs_cannot_be_asked_for_a_new_leader_is_fetched_from_all_the_same(
    offered: tuple[int, int] | None,
) -> None:
    versions = {**VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH: offered or (0, -1)}
    cluster = Cluster(nodes=2, versions=versions)
    cluster.create("a", 1, end=2)
    upstream, fetcher = await fetching(cluster)
    taken = Taken()
    fetcher.subscribe("a", 0, 0, ROOM, taken)
    await asyncio.sleep(0.1)
    log = cluster.topics["a"][0]
    log.leader, log.epoch = 1, log.epoch + 1
    cluster.append("a")
    await asyncio.sleep(3)
    assert taken.offsets == [0, 1, 2]
    assert cluster.bodies(ApiKey.OFFSET_FOR_LEADER_EPOCH) == []
    await ended(upstream, fetcher)
