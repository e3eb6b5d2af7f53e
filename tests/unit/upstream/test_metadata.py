"""Topic metadata, from responses that are late, lack IDs, or briefly omit a topic."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.upstream.cluster import OLD, Cluster, Log

from sharecore.errors import KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream import Topic, Upstream, made_id
from sharecore.upstream.apis import VERSIONS
from sharecore.upstream.cluster import GROUP

Seen = list[tuple[str, str]]


async def watched(cluster: Cluster, **settings: Any) -> tuple[Upstream, Seen]:
    upstream = cluster.upstream(**settings)
    await upstream.start()
    seen: Seen = []
    upstream.metadata.on_change(lambda change, topic: seen.append((change.value, topic.name)))
    return upstream, seen


@in_virtual_time
async def test_changes_of_topics_that_are_kept_are_told() -> None:
    cluster = Cluster()
    cluster.create("a")
    upstream, seen = await watched(cluster, metadata_max_age_ms=10_000)
    found = await upstream.topics(["a", "b"])
    assert isinstance(found["a"], Topic)
    assert isinstance(found["b"], KafkaError)
    cluster.create("b", 2)
    await asyncio.sleep(11)
    cluster.topics["b"].append(Log())
    cluster.topics["a"][0].epoch += 1
    upstream.stale()
    await asyncio.sleep(2)
    cluster.create("a")
    await asyncio.sleep(11)
    assert seen == [
        ("created", "a"),
        ("created", "b"),
        ("led", "a"),
        ("grew", "b"),
        ("recreated", "a"),
    ]
    assert upstream.metadata.by_id(cluster.ids["a"]) is upstream.metadata.get("a")
    await upstream.close()


@in_virtual_time
async def test_a_topic_is_deleted_when_two_answers_a_second_apart_are_without_it() -> None:
    cluster = Cluster()
    cluster.create("a")
    upstream, seen = await watched(cluster)
    await upstream.topics(["a"])
    cluster.says[ApiKey.METADATA].append(
        lambda _: {"topics": [{"error_code": 3, "name": "a"}], "brokers": []}
    )
    upstream.stale()
    await asyncio.sleep(5)
    assert seen == [("created", "a")]
    cluster.topics.clear()
    upstream.stale()
    await asyncio.sleep(0.5)
    assert seen == [("created", "a")]
    await asyncio.sleep(2)
    assert seen == [("created", "a"), ("deleted", "a")]
    await upstream.close()


@in_virtual_time
async def test_an_old_answer_brings_neither_an_old_leader_nor_an_old_topic_back() -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a", leader=1, epoch=7)
    upstream, seen = await watched(cluster)
    await upstream.topics(["a"])
    cluster.topics["a"] = [Log(leader=0, epoch=6)]
    await upstream.topics(["a"])
    assert upstream.metadata.leader("a", 0) == (1, 7)
    old = cluster.ids["a"]
    cluster.create("a")
    await upstream.topics(["a"])
    cluster.ids["a"] = old
    await upstream.topics(["a"])
    topic = upstream.metadata.get("a")
    assert topic is not None
    assert topic.topic_id != old
    assert [change for change, _ in seen] == ["created", "recreated"]
    await upstream.close()


@in_virtual_time
async def test_a_cluster_without_topic_ids_gets_the_same_ids_from_every_node() -> None:
    cluster = Cluster(versions=OLD)
    cluster.create("a")
    upstream, _ = await watched(cluster)
    (found,) = (await upstream.topics(["a"])).values()
    assert isinstance(found, Topic)
    assert (found.topic_id, found.has_id) == (made_id("a cluster", "a"), False)
    assert str(found.topic_id) == "d8e6c1bf-07df-56f1-a5da-21faae6f0e44"
    cluster.topics["a"][0] = Log(leader=0, epoch=0)
    await upstream.topics(["a"])
    assert upstream.metadata.leader("a", 0) == (0, 5)
    await asyncio.sleep(2)
    assert upstream.metadata.leader("a", 0) == (0, 0)
    await upstream.close()


@pytest.mark.parametrize("versions", [VERSIONS, OLD])
@in_virtual_time
async def test_a_broker_that_has_lost_sight_of_the_others_is_not_believed(
    versions: Mapping[ApiKey, tuple[int, int]],
) -> None:
    cluster = Cluster(nodes=2, versions=versions)
    cluster.create("a")
    upstream, _ = await watched(cluster, metadata_max_age_ms=2_000)
    await upstream.topics(["a"])
    cluster.lose_sight(0)
    log = cluster.topics["a"][0]
    log.leader, log.epoch = 1, log.epoch + 1
    await asyncio.sleep(4)
    for _ in range(100):
        assert upstream.metadata.leader("a", 0) == (1, 6)
        await asyncio.sleep(0.1)
    await upstream.close()


@in_virtual_time
async def test_another_broker_is_asked_where_one_is_silent() -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a")
    upstream, _ = await watched(cluster, request_timeout_ms=10_000)
    await upstream.topics(["a"])
    cluster.silent.add(0)
    log = cluster.topics["a"][0]
    log.leader, log.epoch = 1, log.epoch + 1
    for _ in range(5):
        upstream.stale()
        await asyncio.sleep(1.5)
        assert upstream.metadata.leader("a", 0) == (1, 6)
    assert await upstream.find_coordinator(GROUP, "g") == 0
    await upstream.close()


@in_virtual_time
async def test_all_topics_are_kept_and_one_that_is_not_named_is_missing() -> None:
    cluster = Cluster()
    cluster.create("a")
    cluster.create("b")
    upstream, seen = await watched(cluster, metadata_max_age_ms=2_000)
    assert [topic.name for topic in await upstream.all_topics()] == ["a", "b"]
    cluster.create("c")
    del cluster.topics["b"]
    await asyncio.sleep(8)
    assert seen[2:] == [("created", "c"), ("deleted", "b")]
    await upstream.close()


@in_virtual_time
async def test_a_topic_that_this_user_may_not_describe_any_more_is_not_taken_for_deleted() -> None:
    """A list of all topics omits it, as if deleted; a request by name returns the reason."""
    cluster = Cluster()
    cluster.create("a")
    upstream, seen = await watched(cluster, metadata_max_age_ms=2_000)
    await upstream.all_topics()
    cluster.forbidden.add("a")
    await asyncio.sleep(20)
    assert seen == [("created", "a")]
    assert upstream.metadata.get("a") is not None
    assert len(cluster.bodies(ApiKey.METADATA)) < 30
    del cluster.topics["a"]
    cluster.forbidden.clear()
    await asyncio.sleep(8)
    assert seen == [("created", "a"), ("deleted", "a")]
    await upstream.close()


@in_virtual_time
async def test_a_topic_that_others_have_noted_is_gone_when_two_answers_a_second_apart_say_so() -> None:
    cluster = Cluster()
    for name in ("known", "new", "forbidden", "gone", "another"):
        cluster.create(name)
    ids = dict(cluster.ids)
    late = {name: (cluster.topics.pop(name), cluster.ids.pop(name)) for name in ("new", "gone")}
    cluster.forbidden.add("forbidden")
    upstream, seen = await watched(cluster, metadata_max_age_ms=2_000)
    await upstream.all_topics()
    cluster.create("another")
    await upstream.all_topics()
    told: list[str] = []
    for name, topic_id in ids.items():
        upstream.metadata.when_gone(topic_id, name, partial(told.append, name))
    await upstream.refreshed()
    cluster.topics["new"], cluster.ids["new"] = late["new"]
    assert told == ["another"]
    told.clear()
    await asyncio.sleep(10)
    assert told == ["gone"]
    assert ("deleted", "gone") not in seen
    cluster.forbidden.clear()
    await asyncio.sleep(3)
    assert told == ["gone"]
    assert ("created", "forbidden") in seen
    upstream.metadata.when_gone(ids["gone"], "gone", partial(told.append, "at once"))
    assert told == ["gone", "at once"]
    await upstream.close()


@in_virtual_time
async def test_a_name_that_another_topic_has_says_that_the_first_is_gone_if_no_answer_knows_it() -> None:
    """An isolated broker still reports a topic that was recreated since."""
    cluster = Cluster(nodes=2)
    cluster.create("a")
    upstream, _ = await watched(cluster, metadata_max_age_ms=2_000)
    await upstream.all_topics()
    cluster.lose_sight(0)
    before, told = cluster.ids["a"], list[str]()
    await upstream.all_topics()
    cluster.create("a")
    upstream.metadata.when_gone(cluster.ids["a"], "a", partial(told.append, "the newer one"))
    await asyncio.sleep(10)
    assert told == []
    assert upstream.metadata.by_id(cluster.ids["a"]) is not None
    upstream.metadata.when_gone(before, "a", partial(told.append, "the older one"))
    assert told == ["the older one"]
    await upstream.close()


@in_virtual_time
async def test_trouble_asks_again_with_growing_waits_and_says_why() -> None:
    cluster = Cluster(nodes=2)
    cluster.create("a")
    upstream, _ = await watched(cluster)
    await upstream.topics(["a"])
    for broker in cluster.brokers:
        broker.stop()
    upstream.stale()
    await asyncio.sleep(5)
    assert "broker:909" in str(upstream.problem)
    cluster.brokers[1].start()
    await asyncio.sleep(2)
    assert upstream.problem is None
    await upstream.close()


@pytest.mark.parametrize("code", [7, 41])
@in_virtual_time
async def test_what_passes_is_asked_again(code: int) -> None:
    cluster = Cluster()
    cluster.create("a")
    upstream, _ = await watched(cluster)
    cluster.says[ApiKey.METADATA].append(0.5)
    upstream.stale()
    assert isinstance((await upstream.topics(["a"]))["a"], Topic)
    calls = 0

    async def ask() -> int:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise KafkaError(code)
        return calls

    assert await upstream.retry(ask) == 3
    await upstream.close()


@in_virtual_time
async def test_the_brokers_are_asked_in_turn() -> None:
    cluster = Cluster(nodes=3)
    upstream = cluster.upstream(metadata_max_age_ms=1_000)
    await upstream.start()
    await asyncio.sleep(30)
    asked = [each.node for each in cluster.asked if each.api is ApiKey.METADATA]
    assert {tuple(sorted(each)) for each in zip(asked[1:], asked[2:], asked[3:], strict=False)} == {(0, 1, 2)}
    await upstream.close()


@in_virtual_time
async def test_a_broker_that_does_not_name_itself_is_not_asked_again() -> None:
    cluster = Cluster(nodes=2)
    upstream = cluster.upstream()
    await upstream.start()
    away = {
        "cluster_id": "a cluster",
        "controller_id": 1,
        "brokers": [{"node_id": 1, "host": "broker", "port": 9093, "rack": None}],
        "topics": [],
    }
    cluster.says[ApiKey.METADATA].append(away)
    await upstream.topics(["a"])
    upstream.stale()
    await asyncio.sleep(600)
    asked = [each.node for each in cluster.asked if each.api is ApiKey.METADATA]
    # broker 1 answers after that: whichever broker it names next
    assert asked[:3] == [0, 0, 1]
    await upstream.close()
