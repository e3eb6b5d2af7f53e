"""An existing cluster as it answers: topics, offsets, reads, and partitions with one writer."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from tests.harness.aio import in_loop
from tests.harness.batches import values_of
from tests.harness.broker import Broker, free_port
from tests.interop.upstream.connected import append, connected, now_ms

from sharecore._core import encode_batch
from sharecore.client.settings import read_connection_settings
from sharecore.clock import SystemClock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.upstream import (
    EARLIEST,
    LATEST,
    Administration,
    Appender,
    ExclusiveWriter,
    Fenced,
    ListedOffset,
    NotWritten,
    Outlet,
    Topic,
    TopicChange,
    Upstream,
)
from sharecore.upstream.outlet import Answer


@in_loop
async def test_topics_are_made_described_and_seen_to_go(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        seen: list[tuple[TopicChange, uuid.UUID]] = []
        gone = asyncio.Event()

        def changed(change: TopicChange, topic: Topic) -> None:
            seen.append((change, topic.topic_id))
            if change is TopicChange.DELETED:
                gone.set()

        upstream.metadata.on_change(changed)
        admin = Administration(upstream)
        assert await admin.create_topic(name, 2, 1, {"retention.ms": "-1"}) is True
        assert await admin.create_topic(name, 2, 1, {}) is False
        topic = upstream.metadata.get(name)
        assert topic is not None
        assert topic.has_id
        assert [partition.leader for partition in topic.partitions] == [0, 0]
        configs = await admin.topic_configs(name)
        assert (configs["retention.ms"], configs["cleanup.policy"]) == ("-1", "delete")
        message = {"topic_names": [name], "topics": [{"name": name}], "timeout_ms": 5_000}
        await upstream.request(0, calls.DELETE_TOPICS, message)
        assert await admin.create_topic(name, 1, 1, {})
        found = (await upstream.topics([name]))[name]
        assert isinstance(found, Topic)
        assert seen == [
            (TopicChange.CREATED, topic.topic_id),
            (TopicChange.RECREATED, found.topic_id),
        ]
        await upstream.request(0, calls.DELETE_TOPICS, message)
        async with asyncio.timeout(10):
            # a broker reports a topic for a moment after its deletion was confirmed
            while not gone.is_set():
                upstream.stale()
                await asyncio.sleep(0.2)
        assert upstream.metadata.get(name) is None


@in_loop
async def test_one_writer_at_a_time_and_the_log_as_it_was_written(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        admin = Administration(upstream)
        await admin.create_topic(name, 1, 1, {})
        outlet = Outlet(upstream)
        first = ExclusiveWriter(outlet, name, 0, name)
        await first.open(0)
        assert await append(first, b"a", b"b") is None
        second = ExclusiveWriter(outlet, name, 0, name)
        producer = await second.open(first.next_offset)
        assert producer.epoch == 1
        # opening alone fences no one: the following batch does
        assert await append(first, b"c") is None
        assert isinstance(await append(second, b"d"), Fenced)
        end = (await admin.list_offsets({(name, 0): LATEST}))[name, 0]
        assert isinstance(end, ListedOffset)
        await second.open(end.offset)
        assert second.producer == (producer.id, 2)
        assert await append(second, b"e") is None
        stopped = await append(first, b"f")
        assert isinstance(stopped, Fenced)
        assert stopped.code is ErrorCode.INVALID_PRODUCER_EPOCH
        fetched = await admin.read(name, 0, 0, 1 << 20)
        assert values_of(fetched.records) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (4, b"e")]
        assert (fetched.first, fetched.end, fetched.high_watermark) == (0, 5, 5)


@in_loop
async def test_a_batch_that_is_sent_twice_is_written_once(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        admin = Administration(upstream)
        await admin.create_topic(name, 1, 1, {})
        outlet = _Forgetful(upstream)
        writer = ExclusiveWriter(outlet, name, 0, name)
        await writer.open(0)
        for value in (b"a", b"b", b"c"):
            outlet.forgets = 2
            assert await append(writer, value) is None
        assert outlet.sent == 9
        fetched = await admin.read(name, 0, 0, 1 << 20)
        assert values_of(fetched.records) == [(0, b"a"), (1, b"b"), (2, b"c")]


class _Forgetful(Outlet):
    """Loses the connection after so many requests, before the answer is read."""

    forgets = 0
    sent = 0

    async def send(self, topic: str, partition: int, records: bytes) -> Answer:
        self.sent += 1
        answer = await super().send(topic, partition, records)
        if self.forgets:
            self.forgets -= 1
            (await self.upstream.connect(0, "write")).close("the test cuts it")
            return answer._replace(error=KafkaError(ErrorCode.NETWORK_EXCEPTION, "cut"))
        return answer


@in_loop
async def test_appends_beside_others_stand_once(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        admin = Administration(upstream)
        await admin.create_topic(name, 1, 1, {})
        outlet = _Forgetful(upstream)
        one, other = Appender(outlet), Appender(outlet)
        outlet.forgets = 3
        for number in range(4):
            appender = (one, other)[number % 2]
            assert await appender.append(name, 0, [(None, b"%d" % number)], now_ms()) == number
        whole = encode_batch([(None, b"whole")], now_ms=now_ms())
        assert await one.append(name, 0, whole, 0) == 4
        fetched = await admin.read(name, 0, 0, 1 << 20)
        assert [value for _, value in values_of(fetched.records)] == [b"0", b"1", b"2", b"3", b"whole"]


@in_loop
async def test_what_is_too_large_or_in_the_way_of_the_log_is_told(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        admin = Administration(upstream)
        await admin.create_topic(name, 1, 1, {"max.message.bytes": "2000"})
        writer = ExclusiveWriter(Outlet(upstream), name, 0, name)
        await writer.open(0)
        refused = await append(writer, bytes(4_000))
        assert isinstance(refused, NotWritten)
        assert "raise max.message.bytes" in str(refused)
        assert await append(writer, b"a", b"b", b"c") is None
        with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
            await admin.read(name, 0, 9, 1 << 20)
        with pytest.raises(KafkaError, match="none does not exist"):
            await admin.read("none", 0, 0, 1 << 20)


@in_loop
async def test_records_go_up_to_an_offset_and_offsets_are_listed(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        admin = Administration(upstream)
        await admin.create_topic(name, 2, 1, {})
        writer = ExclusiveWriter(Outlet(upstream), name, 0, name)
        await writer.open(0)
        assert await append(writer, b"a", b"b", b"c") is None
        assert await append(writer, b"d") is None
        assert upstream.has(ApiKey.DELETE_RECORDS)
        assert await admin.delete_records(name, {0: 3, 1: 0}) == {0: 3, 1: 0}
        listed = await admin.list_offsets({(name, 0): EARLIEST, (name, 1): LATEST})
        listed |= {(name, 2): (await admin.list_offsets({(name, 0): LATEST}))[name, 0]}
        found = {
            partition: each.offset
            for (_, partition), each in listed.items()
            if isinstance(each, ListedOffset)
        }
        assert found == {0: 3, 1: 0, 2: 4}
        fetched = await admin.read(name, 0, 3, 1 << 20)
        assert (fetched.log_start_offset, values_of(fetched.records)) == (3, [(3, b"d")])


@in_loop
async def test_a_cluster_that_is_not_there_is_told_in_one_line() -> None:
    settings = read_connection_settings(bootstrap_servers=f"127.0.0.1:{free_port()}")
    upstream = Upstream(settings, SystemClock())
    with pytest.raises(
        KafkaError, match=r"cannot reach the upstream cluster at 127.0.0.1:.*check the addresses"
    ):
        await upstream.start()
    await upstream.close()
