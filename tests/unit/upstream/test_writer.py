"""Compare and append: the meaning of each response for a partition's only writer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.batches import headers_of, keyed_batch
from tests.unit.client.virtual import in_virtual_time
from tests.unit.upstream.cluster import Cluster, produced

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream import Appender, ExclusiveWriter, Fenced, NotWritten, Outlet, Unresolved, Upstream

TOPIC = "state"
RECORDS = [(b"k", b"one"), (b"k", b"two")]


async def opened(
    cluster: Cluster, next_offset: int = 0, *, request_timeout_ms: int = 1_000, **more: Any
) -> tuple[Upstream, ExclusiveWriter]:
    upstream = cluster.upstream(request_timeout_ms=request_timeout_ms)
    await upstream.start()
    await upstream.topics([TOPIC])
    writer = ExclusiveWriter(Outlet(upstream), TOPIC, 0, "id", **more)
    await writer.open(next_offset)
    return upstream, writer


def append(writer: ExclusiveWriter, count: int = 2) -> asyncio.Future[KafkaError | None]:
    """Append; return a future with the argument of `done`."""
    ended: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    writer.append([(b"k", b"v")] * count, 1_000, ended.set_result)
    return ended


def sent(cluster: Cluster) -> list[dict[str, int]]:
    """Return the headers of the batches sent."""
    return [
        headers_of(part.records)[0]
        for body in cluster.bodies(ApiKey.PRODUCE)
        for topic in body.topic_data
        for part in topic.partition_data
    ]


def refused(code: ErrorCode) -> Callable[[Any], dict[str, Any]]:
    return lambda _: produced({(TOPIC, 0): {"error_code": int(code), "base_offset": -1}})


@in_virtual_time
async def test_what_is_appended_meanwhile_is_one_batch_that_follows() -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster)
    cluster.says[ApiKey.PRODUCE].append(0.1)
    first = append(writer)
    await asyncio.sleep(0.05)
    second, third = append(writer), append(writer, 3)
    assert writer.next_offset == 7
    assert [await first, await second, await third] == [None, None, None]
    assert [(each["count"], each["sequence"], each["producer_epoch"]) for each in sent(cluster)] == [
        (2, 0, 0),
        (5, 2, 0),
    ]
    assert [body.acks for body in cluster.bodies(ApiKey.PRODUCE)] == [-1, -1]
    await upstream.close()


@in_virtual_time
async def test_another_offset_than_expected_fences_the_writer() -> None:
    cluster = Cluster()
    cluster.create(TOPIC, end=5)
    upstream, writer = await opened(cluster, 4)
    told: list[KafkaError] = []
    writer.on_closed(told.append)
    ended = append(writer)
    error = await ended
    assert isinstance(error, Fenced)
    assert "at 5 instead of 4" in str(error)
    assert told == [error]
    with pytest.raises(Fenced):
        append(writer)
    await upstream.close()


@in_virtual_time
async def test_a_lost_answer_is_found_out_by_sending_the_same_sequence_again() -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster)

    def appended_but_cut(body: Any) -> None:
        cluster.topics[TOPIC][0].end = 2
        cluster.asked[-1].link.cut()

    cluster.says[ApiKey.PRODUCE] += [
        appended_but_cut,
        lambda _: produced({(TOPIC, 0): {"base_offset": 0}}),
    ]
    assert await append(writer) is None
    assert [each["sequence"] for each in sent(cluster)] == [0, 0]
    assert await append(writer) is None
    assert sent(cluster)[-1]["sequence"] == 2
    await upstream.close()


@in_virtual_time
async def test_a_new_leader_gets_the_same_batch() -> None:
    cluster = Cluster(nodes=2)
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster)
    log = cluster.topics[TOPIC][0]
    log.leader, log.epoch = 1, log.epoch + 1
    assert await append(writer) is None
    assert [each.node for each in cluster.asked if each.api is ApiKey.PRODUCE] == [0, 1]
    await upstream.close()


@in_virtual_time
async def test_a_leader_that_waits_for_replicas_that_follow_another_is_not_waited_for() -> None:
    cluster = Cluster(nodes=3)
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster, request_timeout_ms=30_000)
    cluster.lose_sight(0)
    ended = append(writer)
    await asyncio.sleep(5)
    assert not ended.done()
    log = cluster.topics[TOPIC][0]
    log.leader, log.epoch = 1, log.epoch + 1
    async with asyncio.timeout(3):
        assert await ended is None
    assert [each.node for each in cluster.asked if each.api is ApiKey.PRODUCE] == [0, 1]
    assert [each["sequence"] for each in sent(cluster)] == [0, 0]
    await upstream.close()


@in_virtual_time
async def test_too_few_replicas_in_time_is_surely_not_written_and_the_writer_goes_on() -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster, timeout_ms=2_000)
    cluster.says[ApiKey.PRODUCE] += [refused(ErrorCode.NOT_ENOUGH_REPLICAS)] * 50
    first = append(writer)
    await asyncio.sleep(0.5)
    second = append(writer)
    for ended in (first, second):
        error = await ended
        assert isinstance(error, NotWritten)
        assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert "min.insync.replicas" in str(error)
    assert writer.next_offset == 0
    cluster.says[ApiKey.PRODUCE].clear()
    assert await append(writer) is None
    assert sent(cluster)[-1]["sequence"] == 0
    await upstream.close()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
@in_virtual_time
async def test_what_may_have_been_appended_closes_the_writer_when_it_stays_open(code: ErrorCode) -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster, timeout_ms=2_000)
    cluster.says[ApiKey.PRODUCE] += [refused(code)] + [refused(ErrorCode.NOT_ENOUGH_REPLICAS)] * 50
    assert isinstance(await append(writer), Unresolved)
    assert isinstance(writer.closed, Unresolved)
    await upstream.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, Fenced),
        (ErrorCode.PRODUCER_FENCED, Fenced),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Unresolved),
        (ErrorCode.UNKNOWN_PRODUCER_ID, Unresolved),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, Unresolved),
    ],
)
@in_virtual_time
async def test_a_producer_that_is_not_ours_any_more_closes_the_writer(
    code: ErrorCode, kind: type[KafkaError]
) -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster)
    cluster.says[ApiKey.PRODUCE].append(refused(code))
    first = append(writer)
    assert isinstance(await first, kind)
    assert len(sent(cluster)) == 1
    cluster.topics[TOPIC][0].end = 9
    producer = await writer.open(9)
    assert producer.epoch == 1
    assert await append(writer) is None
    assert sent(cluster)[-1]["producer_epoch"] == 1
    assert sent(cluster)[-1]["sequence"] == 0
    await upstream.close()


@in_virtual_time
async def test_a_missing_right_is_told_at_once_with_what_to_do() -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster)
    cluster.says[ApiKey.PRODUCE].append(refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    error = await append(writer)
    assert isinstance(error, NotWritten)
    assert "give the user of this node Write on topic state" in str(error)
    await upstream.close()


@in_virtual_time
async def test_no_answer_at_all_leaves_it_open_whether_it_was_written() -> None:
    cluster = Cluster()
    cluster.create(TOPIC)
    upstream, writer = await opened(cluster, timeout_ms=3_000)
    cluster.says[ApiKey.PRODUCE] += [None] * 50
    began = asyncio.get_running_loop().time()
    assert isinstance(await append(writer), Unresolved)
    assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.5)
    assert len({each["sequence"] for each in sent(cluster)}) == 1
    await upstream.close()


@in_virtual_time
async def test_a_broker_that_cannot_be_reached_was_surely_not_written_to() -> None:
    cluster = Cluster(nodes=2)
    cluster.create(TOPIC, leader=1)
    upstream, writer = await opened(cluster, timeout_ms=2_000)
    cluster.brokers[1].stop()
    assert isinstance(await append(writer), NotWritten)
    cluster.brokers[1].start()
    assert await append(writer) is None
    await upstream.close()


@in_virtual_time
async def test_partitions_of_one_broker_share_a_request() -> None:
    cluster = Cluster()
    cluster.create(TOPIC, 3)
    upstream, first = await opened(cluster)
    outlet = Outlet(upstream)
    writers = [ExclusiveWriter(outlet, TOPIC, index, f"id-{index}") for index in range(3)]
    for writer in writers:
        await writer.open(0)
    cluster.says[ApiKey.PRODUCE].append(0.1)
    ended = [append(writers[0])]
    await asyncio.sleep(0.05)
    ended += [append(writer) for writer in writers[1:]]
    assert await asyncio.gather(*ended) == [None, None, None]
    bodies = cluster.bodies(ApiKey.PRODUCE)
    assert [len(body.topic_data[0].partition_data) for body in bodies] == [1, 2]
    first.close(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    await upstream.close()


@in_virtual_time
async def test_what_others_write_to_is_appended_to_once_and_in_turn() -> None:
    cluster = Cluster()
    cluster.create(TOPIC, end=100)
    upstream, _ = await opened(cluster)
    appender = Appender(Outlet(upstream))
    cluster.says[ApiKey.PRODUCE] += [lambda _: cluster.asked[-1].link.cut(), 0.0]
    first, second = await asyncio.gather(
        appender.append(TOPIC, 0, RECORDS, 1_000), appender.append(TOPIC, 0, RECORDS, 1_000)
    )
    assert (first, second) == (100, 102)
    assert [each["sequence"] for each in sent(cluster)] == [0, 0, 2]
    assert cluster.bodies(ApiKey.INIT_PRODUCER_ID)[-1].transactional_id is None
    cluster.says[ApiKey.PRODUCE].append(refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    with pytest.raises(Unresolved):
        await appender.append(TOPIC, 0, RECORDS, 1_000)
    assert await appender.append(TOPIC, 0, RECORDS, 1_000) == 104
    assert sent(cluster)[-1]["sequence"] == 0
    assert await appender.append(TOPIC, 0, keyed_batch([(None, b"letter")]), 1_000) == 106
    await upstream.close()
