"""Requests about partitions: split by upstream leader, merged, and always answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.harness.batches import keyed_batch
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, Allowing, Client, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode
from sharecore.network import Disconnect
from sharecore.protocol import ApiKey
from sharecore.security.acl import CLUSTER_NAME, Operation


async def way(nodes: int = 2, authorizer: Any = None) -> Through:
    """Topic `a` with two partitions on different leaders, and `b` with one."""
    cluster = Cluster(nodes=nodes, versions=ALL)
    cluster.create("a", 2)
    cluster.topics["a"][1].leader = nodes - 1
    cluster.create("b")
    cluster.create("__state", 2)
    return await Through(cluster, authorizer).begin()


def batch(*values: bytes) -> bytes:
    return keyed_batch([(None, value) for value in values])


def produce(through: Through, client: Client, *places: tuple[str, int], acks: int = -1, **more: Any) -> Any:
    data: dict[str, list[dict[str, Any]]] = {}
    for topic, index in places:
        data.setdefault(topic, []).append({"index": index, "records": batch(b"1", b"2")})
    topics = [{"name": name, "partition_data": parts} for name, parts in data.items()]
    message = {"acks": acks, "timeout_ms": 500, "topic_data": topics} | more
    return through.ask(client, ApiKey.PRODUCE, 9, **message)


def told(answer: Any) -> list[tuple[str, int, int, int]]:
    """Return topic, partition, error and base offset of each part of a Produce response."""
    return [
        (topic.name, part.index, part.error_code, part.base_offset)
        for topic in answer.responses
        for part in topic.partition_responses
    ]


@in_virtual_time
async def test_a_produce_is_split_by_leader_and_merged_in_its_order() -> None:
    through = await way()
    client = through.client()
    answer = await produce(through, client, ("a", 1), ("a", 0), ("b", 0))
    assert told(answer) == [("a", 1, 0, 0), ("a", 0, 0, 0), ("b", 0, 0, 0)]
    sent = {
        node: [(topic.name, part.index) for topic in body.topic_data for part in topic.partition_data]
        for node, body in through.bodies(ApiKey.PRODUCE)
    }
    assert sent == {0: [("a", 0), ("b", 0)], 1: [("a", 1)]}
    # bytes arrive unchanged
    records = through.bodies(ApiKey.PRODUCE)[0][1].topic_data[0].partition_data[0].records
    assert records == batch(b"1", b"2")
    await through.end()


@in_virtual_time
async def test_requests_of_a_client_arrive_in_their_order() -> None:
    """Including those sent while the connection is being established."""
    through = await way()
    client = through.client()
    asked = [produce(through, client, ("a", index % 2)) for index in range(20)]
    offsets = [told(await each)[0][3] for each in asked]
    assert offsets == [2 * (index // 2) for index in range(20)]
    assert len({each.link for each in through.cluster.asked if each.api is ApiKey.PRODUCE}) == 2
    await through.end()


@in_virtual_time
async def test_each_client_has_connections_of_its_own_that_end_with_it() -> None:
    through = await way(nodes=1)
    first, second = through.client(), through.client()
    await produce(through, first, ("a", 0))
    await produce(through, second, ("a", 0))
    links = [each.link for each in through.cluster.asked if each.api is ApiKey.PRODUCE]
    assert links[0] is not links[1]
    first.go()
    assert [link.is_closing() for link in links] == [True, False]
    await through.end()
    assert links[1].is_closing()


@in_virtual_time
async def test_what_cannot_be_served_is_refused_by_partition() -> None:
    through = await way(authorizer=Allowing((Operation.WRITE, "b")))
    answer = await produce(
        through, through.client(), ("a", 0), ("a", 9), ("b", 0), ("none", 0), ("__state", 0)
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told(answer) == [
        ("a", 0, 0, 0),
        ("a", 9, unknown, -1),
        ("b", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1),
        ("none", 0, unknown, -1),
        ("__state", 0, unknown, -1),
    ]
    await through.end()


@in_virtual_time
async def test_nobody_writes_what_belongs_to_the_tier() -> None:
    through = await way()
    answer = await produce(through, through.client(), ("__share_group_state", 0))
    assert told(answer)[0][2] == ErrorCode.INVALID_TOPIC_EXCEPTION
    answer = await produce(through, through.client(), ("__consumer_offsets", 0))
    assert told(answer)[0][2] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    answer = await produce(through, through.client(), ("a", 0), transactional_id="sharecore-__state-3")
    assert told(answer)[0][2] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert through.bodies(ApiKey.PRODUCE) == []
    await through.end()


@in_virtual_time
async def test_batches_for_a_topic_that_another_node_made_wait_for_it_in_their_order() -> None:
    """The cluster takes the first batch it sees of an idempotent producer for its first."""
    through = await way()
    client = through.client()
    through.cluster.create("late")
    first, second = produce(through, client, ("late", 0)), produce(through, client, ("late", 0))
    await asyncio.sleep(0.001)
    beside = produce(through, client, ("a", 0))
    third = produce(through, client, ("late", 0))
    assert [told(await each)[0][2:] for each in (first, second, third)] == [(0, 0), (0, 2), (0, 4)]
    assert told(await beside) == [("a", 0, 0, 0)]
    sent = [body.topic_data[0].name for _, body in through.bodies(ApiKey.PRODUCE)]
    assert sent == ["late", "late", "a", "late"]
    # nothing is left for later requests to wait for
    assert told(await produce(through, client, ("late", 0)))[0][3] == 6
    await through.end()


@in_virtual_time
async def test_a_topic_that_is_not_there_is_not_waited_for_beyond_the_time_of_its_request() -> None:
    through = await way()
    client, loop = through.client(), asyncio.get_running_loop()
    began = loop.time()
    lost, found = produce(through, client, ("none", 0), timeout_ms=300), produce(through, client, ("a", 0))
    assert told(await lost)[0][2] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told(await found)[0][2] == 0
    assert 0.29 <= loop.time() - began < 0.5
    await through.end()


@in_virtual_time
async def test_a_moved_leader_is_asked_for_and_found() -> None:
    through = await way()
    client = through.client()
    through.cluster.topics["a"][0].leader = 1
    through.cluster.topics["a"][0].epoch += 1
    answer = await produce(through, client, ("a", 0))
    assert told(answer)[0][2] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.sleep(1)
    answer = await produce(through, client, ("a", 0))
    assert told(answer) == [("a", 0, 0, 0)]
    await through.end()


@in_virtual_time
async def test_a_broker_that_is_gone_leaves_the_others_partitions_alone() -> None:
    through = await way()
    client = through.client()
    await produce(through, client, ("a", 1))
    through.cluster.brokers[1].stop()
    answer = await produce(through, client, ("a", 0), ("a", 1))
    # the connection had ended before: no broker can have received it
    assert told(answer) == [("a", 0, 0, 0), ("a", 1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    await through.end()


@pytest.mark.parametrize("dies", [True, False])
@in_virtual_time
async def test_an_answer_that_does_not_come_is_an_error_to_try_again_after(dies: bool) -> None:
    through = await way(nodes=1)
    through.cluster.says[ApiKey.PRODUCE].append(None)
    asked = produce(through, through.client(), ("a", 0))
    await asyncio.sleep(0.2)
    began = asyncio.get_running_loop().time()
    if dies:
        through.cluster.brokers[0].stop()
    # a batch may have been written: the producer's sequence decides
    assert told(await asked)[0][2] == ErrorCode.REQUEST_TIMED_OUT
    waited = asyncio.get_running_loop().time() - began
    assert waited < 0.01 if dies else waited == pytest.approx(1.3, abs=0.05)
    await through.end()


def follow(through: Through, client: Client, sequence: int, place: tuple[str, int] = ("a", 0)) -> Any:
    """Produce two records of an idempotent producer."""
    topic, index = place
    values: list[tuple[bytes | None, bytes | None]] = [(None, b"1"), (None, b"2")]
    records = keyed_batch(values, producer_id=7, producer_epoch=0, sequence=sequence)
    data = [{"name": topic, "partition_data": [{"index": index, "records": records}]}]
    return through.ask(client, ApiKey.PRODUCE, 9, acks=-1, timeout_ms=500, topic_data=data)


@in_virtual_time
async def test_what_follows_a_lost_batch_is_refused_until_that_comes_again() -> None:
    """A broker would find a gap in the sequence, and librdkafka would resend everything under a new epoch,
    as duplicates.
    """
    through = await way(nodes=1)
    client = through.client()
    assert told(await follow(through, client, 0))[0][2] == 0
    through.cluster.says[ApiKey.PRODUCE].append(None)
    lost = follow(through, client, 2)
    await asyncio.sleep(0.01)
    for link in list(through.cluster.brokers[0].links):
        link.cut()
    # pipelined: the client does not know yet
    second, other = follow(through, client, 4), follow(through, client, 0, ("b", 0))
    assert told(await lost)[0][2] == ErrorCode.REQUEST_TIMED_OUT
    third = follow(through, client, 6)
    assert [told(await each)[0][2] for each in (second, third)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert told(await other)[0][2] == 0
    again = [follow(through, client, sequence) for sequence in (2, 4, 6, 8)]
    assert [told(await each)[0][2] for each in again] == [0, 0, 0, 0]
    # a batch on its own connection does not wait for another connection's
    assert told(await follow(through, through.client(), 40))[0][2] == 0
    await through.end()


@in_virtual_time
async def test_what_follows_a_batch_that_could_not_be_sent_is_refused_until_that_comes_again() -> None:
    through = await way(nodes=1)
    client = through.client()
    assert told(await follow(through, client, 0))[0][2] == 0
    through.cluster.brokers[0].stop()
    refused = follow(through, client, 2)
    assert told(await refused)[0][2] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    through.cluster.brokers[0].start()
    sent = len(through.bodies(ApiKey.PRODUCE))
    assert told(await follow(through, client, 4))[0][2] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(through.bodies(ApiKey.PRODUCE)) == sent
    # the producer gave the first one up: that is its choice
    assert told(await follow(through, client, 4))[0][2] == 0
    await through.end()


@in_virtual_time
async def test_what_follows_a_batch_for_a_moved_leader_is_refused_until_that_comes_again() -> None:
    through = await way()
    client = through.client()
    through.cluster.topics["a"][0].leader = 1
    through.cluster.topics["a"][0].epoch += 1
    answer = await follow(through, client, 0)
    assert told(answer)[0][2] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.sleep(1)
    assert told(await follow(through, client, 2))[0][2] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    again = [follow(through, client, sequence) for sequence in (0, 2)]
    assert [told(await each)[0][2] for each in again] == [0, 0]
    await through.end()


@in_virtual_time
async def test_who_wants_no_acknowledgement_gets_none_and_is_put_off_where_it_failed() -> None:
    through = await way()
    client = through.client()
    assert await produce(through, client, ("a", 0), acks=0) is None
    assert through.bodies(ApiKey.PRODUCE)[0][1].acks == 1
    with pytest.raises(Disconnect, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await produce(through, client, ("none", 0), acks=0)
    await through.end()


@in_virtual_time
async def test_offsets_are_listed_without_the_epochs_of_another_cluster() -> None:
    through = await way()

    def listed(body: Any) -> dict[str, Any]:
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {"partition_index": part.partition_index, "offset": 40, "leader_epoch": 57}
                        for part in topic.partitions
                    ],
                }
                for topic in body.topics
            ]
        }

    through.cluster.says[ApiKey.LIST_OFFSETS] += [listed, listed]
    parts = [{"partition_index": 0, "current_leader_epoch": 3, "timestamp": -1}]
    topics = [{"name": name, "partitions": parts} for name in ("a", "__share_group_state", "none")]
    answer = await through.ask(through.client(), ApiKey.LIST_OFFSETS, 7, topics=topics)
    assert [(each.name, *each.partitions[0]) for each in answer.topics] == [
        ("a", 0, 0, -1, 40, -1),
        ("__share_group_state", 0, 0, -1, 40, -1),
        ("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1),
    ]
    ((_, body),) = through.bodies(ApiKey.LIST_OFFSETS)
    assert [topic.name for topic in body.topics] == ["a", "__state"]
    assert {part.current_leader_epoch for topic in body.topics for part in topic.partitions} == {-1}
    await through.end()


@pytest.mark.parametrize("operation", [Operation.DESCRIBE, Operation.CLUSTER_ACTION])
@in_virtual_time
async def test_epochs_of_a_topic_are_told_to_whoever_may_act_on_the_cluster(operation: Operation) -> None:
    others = {Operation.DESCRIBE, Operation.CLUSTER_ACTION} - {operation}
    denied = [(each, name) for each in others for name in ("a", CLUSTER_NAME)]
    for both, code in (([], 0), ([(operation, "a"), (operation, CLUSTER_NAME)], 29)):
        through = await way(authorizer=Allowing(*denied, *both))
        part = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
        through.cluster.says[ApiKey.OFFSET_FOR_LEADER_EPOCH].append(
            {"topics": [{"topic": "a", "partitions": [{"partition": 0, "end_offset": 5}]}]}
        )
        answer = await through.ask(
            through.client(),
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            4,
            topics=[{"topic": "a", "partitions": [part]}],
        )
        assert answer.topics[0].partitions[0].error_code == code
        await through.end()


@in_virtual_time
async def test_what_is_named_twice_is_produced_and_told_of_once() -> None:
    through = await way()
    parts = [{"index": 0, "records": batch(value)} for value in (b"1", b"2")]
    topics = [{"name": name, "partition_data": parts} for name in ("a", "none", "a")]
    answer = await through.ask(
        through.client(), ApiKey.PRODUCE, 9, acks=-1, timeout_ms=500, topic_data=topics
    )
    assert [(name, index) for name, index, _, _ in told(answer)] == [("a", 0), ("none", 0)]
    await through.end()


@in_virtual_time
async def test_offsets_that_are_asked_for_twice_are_refused_once() -> None:
    """Those of a topic hidden from the client as often as requested, like Apache Kafka."""
    through = await way(authorizer=Allowing((Operation.DESCRIBE, "b")))
    parts = [{"partition_index": index, "timestamp": -1} for index in (0, 0)]
    topics = [{"name": name, "partitions": parts} for name in ("a", "b", "none", "a")]
    answer = await through.ask(through.client(), ApiKey.LIST_OFFSETS, 7, topics=topics)
    assert [(each.name, [part.error_code for part in each.partitions]) for each in answer.topics] == [
        ("a", [ErrorCode.INVALID_REQUEST]),
        ("b", [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2),
        ("none", [ErrorCode.INVALID_REQUEST]),
    ]
    assert through.bodies(ApiKey.LIST_OFFSETS) == []
    await through.end()


@in_virtual_time
async def test_topics_of_which_nothing_is_to_be_deleted_are_not_told_of() -> None:
    through = await way()
    parts = [{"partition_index": 0, "offset": 5}]
    topics = [{"name": "none", "partitions": parts}, {"name": "a", "partitions": []}]
    answer = await through.ask(through.client(), ApiKey.DELETE_RECORDS, 2, topics=topics)
    assert [(each.name, *each.partitions) for each in answer.topics] == [
        ("none", (0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    ]
    await through.end()


@in_virtual_time
async def test_producers_of_what_is_no_topic_are_refused_with_words() -> None:
    through = await way()
    topics = [{"name": name, "partition_indexes": [0]} for name in ("none", "a b")]
    answer = await through.ask(through.client(), ApiKey.DESCRIBE_PRODUCERS, 0, topics=topics)
    (unknown,), (wrong,) = (each.partitions for each in answer.topics)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message == "This server does not host this topic-partition."
    assert wrong.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "a b" in wrong.error_message
    await through.end()
