"""Fetch: brokers with records respond, the others keep waiting, and nothing is requested twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.harness.batches import headers_of
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, Client, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey


async def way(nodes: int = 2) -> Through:
    """Topic `a`: one partition per broker."""
    cluster = Cluster(nodes=nodes, versions=ALL)
    cluster.create("a", nodes)
    for index, log in enumerate(cluster.topics["a"]):
        log.leader = index
    cluster.create("__state", 1)
    return await Through(cluster).begin()


def fetch(through: Through, client: Client, *offsets: int, version: int = 13, **more: Any) -> Any:
    """Fetch the partitions of `a` from these offsets."""
    parts = [
        {
            "partition": index,
            "fetch_offset": offset,
            "current_leader_epoch": 1,
            "last_fetched_epoch": -1,
            "partition_max_bytes": 1 << 20,
        }
        for index, offset in enumerate(offsets)
    ]
    key = {"topic_id": through.cluster.ids["a"]} if version >= 13 else {"topic": "a"}
    message = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1 << 30,
        "session_epoch": 0,
        "topics": [{**key, "partitions": parts}],
        "rack_id": "here",
        **more,
    }
    return through.ask(client, ApiKey.FETCH, version, **message)


def found(answer: Any) -> list[tuple[int, int, list[int]]]:
    """Return partition, error and batch offsets of each part of a response."""
    return [
        (
            part.partition_index,
            part.error_code,
            [header["base_offset"] for header in headers_of(part.records)],
        )
        for topic in answer.responses
        for part in topic.partitions
    ]


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
@in_virtual_time
async def test_records_of_all_leaders_come_as_they_are(version: int) -> None:
    through = await way()
    through.cluster.append("a", 0, 2)
    through.cluster.append("a", 1, 1)
    client = through.client()
    answer = await fetch(through, client, 0, 0, version=version)
    first = found(answer)
    answer = await fetch(through, client, len(first[0][2]), len(first[1][2]), version=version)
    both = [one[2] + two[2] for one, two in zip(first, found(answer), strict=True)]
    assert both == [[0, 1], [0]]
    _, body = through.bodies(ApiKey.FETCH)[0]
    # a response is no larger than the node allows, from all brokers together
    assert body.max_bytes == 1 << 19
    if version >= 11:
        assert (body.session_id, body.session_epoch, body.rack_id) == (0, -1, "")
    assert {part.current_leader_epoch for topic in body.topics for part in topic.partitions} <= {-1}
    await through.end()


@in_virtual_time
async def test_records_of_one_broker_do_not_wait_for_another() -> None:
    """A waiting fetch is not repeated, and its records are in the next response."""
    through = await way()
    client = through.client()
    began = now()
    asked = fetch(through, client, 0, 0, max_wait_ms=500)
    await asyncio.sleep(0.1)
    through.cluster.append("a", 0)
    answer = await asked
    assert found(answer) == [(0, 0, [0]), (1, 0, [])]
    assert now() - began == pytest.approx(0.1, abs=0.01)
    asked = fetch(through, client, 1, 0)
    await asyncio.sleep(0.1)
    through.cluster.append("a", 1)
    assert found(await asked) == [(0, 0, []), (1, 0, [0])]
    assert [node for node, _ in through.bodies(ApiKey.FETCH)] == [0, 1, 0]
    await through.end()


@in_virtual_time
async def test_nothing_is_told_when_the_time_is_over() -> None:
    through = await way()
    client = through.client()
    for _ in range(3):
        began = now()
        assert found(await fetch(through, client, 0, 0, max_wait_ms=300)) == [(0, 0, []), (1, 0, [])]
        assert now() - began == pytest.approx(0.3, abs=0.06)
    assert len(through.bodies(ApiKey.FETCH)) == 6
    await through.end()


@in_virtual_time
async def test_a_fetch_that_has_waited_already_goes_on_as_long_as_it_is_asked_for() -> None:
    through = await way()
    client = through.client()
    asked = fetch(through, client, 0, 0)
    await asyncio.sleep(0.4)
    through.cluster.append("a", 0)
    await asked
    began = now()
    # the other broker's wait ends after 0.1 s, this one's after 0.5 s
    assert found(await fetch(through, client, 1, 0)) == [(0, 0, []), (1, 0, [])]
    assert now() - began == pytest.approx(0.5, abs=0.06)
    await through.end()


@in_virtual_time
async def test_who_asks_for_something_else_does_not_get_what_waits() -> None:
    through = await way()
    client = through.client()
    asked = fetch(through, client, 0, 0)
    await asyncio.sleep(0.1)
    through.cluster.append("a", 0)
    await asked
    through.cluster.append("a", 1, 3)
    assert found(await fetch(through, client, 1, 2))[1] == (1, 0, [2])
    await through.end()


@in_virtual_time
async def test_watermarks_are_told_of_what_has_no_answer_yet() -> None:
    through = await way()
    through.cluster.topics["a"][1].end = 7
    client = through.client()
    asked = fetch(through, client, 0, 7, max_wait_ms=100)
    await asked
    asked = fetch(through, client, 0, 7)
    through.cluster.append("a", 0)
    parts = (await asked).responses[0].partitions
    assert [part.high_watermark for part in parts] == [1, 7]
    await through.end()


@in_virtual_time
async def test_errors_are_told_at_once() -> None:
    through = await way()
    client = through.client()
    began = now()
    through.cluster.topics["a"][0].broken = ErrorCode.OFFSET_OUT_OF_RANGE
    assert found(await fetch(through, client, 9, 0))[0] == (0, ErrorCode.OFFSET_OUT_OF_RANGE, [])
    through.cluster.brokers[1].stop()
    assert found(await fetch(through, client, 9, 0))[1] == (1, ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
    assert now() - began < 0.2
    await through.end()


@in_virtual_time
async def test_sessions_are_not_kept() -> None:
    through = await way(nodes=1)
    client = through.client()
    answer = await fetch(through, client, 0, max_wait_ms=10)
    assert answer.session_id == 0
    for session_id in (0, 5):
        answer = await fetch(through, client, 0, session_id=session_id, session_epoch=1)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert answer.responses == []
        for whole in (0, -1):
            asked = {"session_id": session_id, "session_epoch": whole, "max_wait_ms": 10}
            answer = await fetch(through, client, 0, **asked)
            assert (answer.error_code, answer.session_id, len(answer.responses)) == (0, 0, 1)
    await through.end()


@in_virtual_time
async def test_a_client_that_goes_leaves_nothing_behind() -> None:
    through = await way()
    client = through.client()
    asked = fetch(through, client, 0, 0)
    await asyncio.sleep(0.1)
    asked.cancel()
    client.go()
    links = {each.link for each in through.cluster.asked if each.api is ApiKey.FETCH}
    assert [link.is_closing() for link in links] == [True, True]
    await through.end()
