"""What is delivered, and what becomes of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic, produce
from tests.interop.client.conftest import ConsumerMaker
from tests.interop.client.receive import commit, delivered, nothing_comes, receive, settle, values

from sharecore.client import (
    Acknowledged,
    AcknowledgeType,
    ConsumerClosed,
    DeserializationError,
    Record,
    TopicPartition,
    WakeupError,
)
from sharecore.errors import ErrorCode, KafkaError


@in_loop
async def test_implicit_mode_accepts_with_the_next_poll_and_with_a_commit(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(1200))
    async with consumer(share_acknowledgement_mode="implicit") as member:
        records = await receive(member, 1200)
        await commit(member)
    assert [record.value for record in records] == values(1200)
    assert {record.delivery_count for record in records} == {1}
    async with consumer() as successor:
        assert await nothing_comes(successor)


@in_loop
async def test_an_exception_gives_the_last_delivery_back(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(10))

    async def fail_at(offset: int) -> None:
        async with consumer(share_acknowledgement_mode="implicit") as member:
            async for record in member:
                if record.offset == offset:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_at(6)
    async with consumer() as successor:
        assert [record.offset for record in await receive(successor, 4)] == [6, 7, 8, 9]


@in_loop
async def test_iteration_goes_on_where_it_stopped(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(10))
    seen: list[int] = []
    async with consumer(share_acknowledgement_mode="implicit") as member:
        for stop in (3, 6, 9):
            async for record in member:
                seen.append(record.offset)
                if record.offset == stop:
                    break
    assert seen == list(range(10))
    async with consumer() as successor:
        # records are accepted only by the next poll
        assert delivered(await receive(successor, 1)) == [(9, 2)]


@in_loop
async def test_accept_release_and_reject(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(9))
    async with consumer() as member:
        kinds = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
        for record in await receive(member, 9):
            member.acknowledge(record, kinds[record.offset % 3])
        await commit(member)
        again = await receive(member, 3)
        assert delivered(again) == [(1, 2), (4, 2), (7, 2)]
        member.accept(again)
        await commit(member)
        assert await nothing_comes(member)
    async with consumer() as successor:
        assert await nothing_comes(successor)


@in_loop
async def test_many_batches_are_held_and_acknowledged_in_any_order(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(50))
    async with consumer(share_acquire_mode="record_limit", max_poll_records=10) as member:
        batches = []
        for _ in range(5):
            batches.append(await member.poll(10, timeout=10))
            await member.renew(batches[-1])
        assert [[record.offset for record in batch] for batch in batches] == [
            list(range(first, first + 10)) for first in range(0, 50, 10)
        ]
        for batch in (batches[3], batches[0], batches[4]):
            member.accept(batch)
            await commit(member)
        for record in reversed([*batches[2], *batches[1]]):
            member.accept(record)
        await commit(member)
    async with consumer() as successor:
        assert await nothing_comes(successor)


@in_loop
async def test_what_is_left_of_a_batch(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(10))
    async with consumer() as member:
        batch = await member.poll(10)
        member.reject(batch[4])
        member.release(batch[5])
        member.accept(batch)
        await commit(member)
        assert delivered(await settle(member, 1)) == [(5, 2)]


@in_loop
async def test_records_put_back_are_the_same_delivery(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(6))
    async with consumer() as member:
        records = await receive(member, 6)
        member.accept(records[:2])
        member.put_back(records)
        assert delivered(await receive(member, 4)) == [(offset, 1) for offset in range(2, 6)]
        member.accept(records[2:])
        await commit(member)
        assert await nothing_comes(member, 1)


@pytest.mark.parametrize("limit", [1, 7])
@in_loop
async def test_never_more_than_was_asked_for(
    broker: Broker, topic: str, consumer: ConsumerMaker, limit: int
) -> None:
    produce(broker.bootstrap, topic, values(20))
    async with consumer() as member:
        seen: list[Record] = []
        while len(seen) < 20:
            batch = await member.poll(limit, timeout=10)
            assert 0 < len(batch) <= limit
            member.accept(batch)
            seen += batch
        assert [record.offset for record in seen] == list(range(20))
        await commit(member)


@in_loop
async def test_record_limit_leases_no_more_than_asked(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(20))
    settings = {"share_acquire_mode": "record_limit", "prefetch_records": 0}
    async with consumer(**settings) as one, consumer(**settings) as other:
        first = await one.poll(5, timeout=10)
        second = await other.poll(15, timeout=10)
        assert [record.offset for record in [*first, *second]] == list(range(20))


@in_loop
async def test_the_results_of_a_commit(broker: Broker, group: str, consumer: ConsumerMaker) -> None:
    names = [f"{group}-a", f"{group}-b"]
    for name in names:
        create_topic(broker.bootstrap, name, partitions=2)
        for partition in range(2):
            produce(broker.bootstrap, name, values(5), partition=partition)
    heard: list[Acknowledged] = []
    async with consumer(topics=names) as member:
        assert await member.commit_sync() == {}
        records = await receive(member, 20)
        member.set_acknowledgement_commit_callback(heard.append)
        member.accept(records)
        expected = {TopicPartition(name, partition): None for name in names for partition in range(2)}
        assert await member.commit_sync() == expected
        assert await member.commit_sync() == {}
        assert member.assignment == expected.keys()
    assert sorted((answer.topic, answer.partition) for answer in heard) == sorted(expected)
    assert {answer.offsets for answer in heard} == {((0, 4),)}


@in_loop
async def test_what_a_callback_raises_is_raised_by_the_next_call(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    def callback(_: Acknowledged) -> None:
        raise ZeroDivisionError

    produce(broker.bootstrap, topic, values(1))
    async with consumer() as member:
        member.set_acknowledgement_commit_callback(callback)
        member.accept(await receive(member, 1))
        with pytest.raises(ZeroDivisionError):
            await member.commit_sync()
        assert await nothing_comes(member, 0.5)


@pytest.mark.usefixtures("short_lock")
@in_loop
async def test_a_lock_that_ran_out_does_not_fail_the_others(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(5))
    heard: list[Acknowledged] = []
    settings = {"share_acquire_mode": "record_limit", "prefetch_records": 0}
    async with consumer(**settings) as member, consumer(**settings) as other:
        late = await member.poll(2, timeout=10)
        await member.renew(late)
        member.set_acknowledgement_commit_callback(heard.append)
        await asyncio.sleep(3.5)
        taken = await other.poll(2, timeout=10)
        assert delivered(taken) == [(0, 2), (1, 2)]
        fresh = await member.poll(3, timeout=10)
        assert delivered(fresh) == [(2, 1), (3, 1), (4, 1)]
        member.accept([*late, *fresh])
        (error,) = (await member.commit_sync()).values()
        assert error is not None
        assert error.code == ErrorCode.INVALID_RECORD_STATE
        assert {answer.offsets for answer in heard if answer.error is None} == {((2, 4),)}
        assert {answer.offsets for answer in heard if answer.error is not None} == {((0, 1),)}
        other.accept(taken)
        await commit(other)
    async with consumer() as successor:
        assert await nothing_comes(successor)


@in_loop
async def test_a_record_is_acknowledged_once(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(1))
    async with consumer() as member:
        (record,) = await receive(member, 1)
        member.release(record)
        member.accept(record)
        await commit(member)
        with pytest.raises(KafkaError) as refused:
            member.accept(record)
        assert refused.value.code == ErrorCode.INVALID_RECORD_STATE
        assert await nothing_comes(member, 1)


@in_loop
async def test_the_delivery_limit_archives(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    configure_group(broker.bootstrap, group, share_delivery_count_limit=2)
    produce(broker.bootstrap, topic, values(1))
    async with consumer() as member:
        for count in (1, 2):
            records = await receive(member, 1)
            assert delivered(records) == [(0, count)]
            member.release(records)
        assert await nothing_comes(member)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@in_loop
async def test_records_arrive_as_they_were_sent(
    broker: Broker, topic: str, consumer: ConsumerMaker, codec: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 50})
    headers: list[tuple[str, str | bytes | None]] = [("first", b"1"), ("none", None), ("first", "ä".encode())]
    for number in range(300):
        producer.produce(
            topic,
            b"%d" % number * 50,
            key=f"key {number}",
            headers=headers,
            timestamp=1_700_000_000_000 + number,
        )
    producer.produce(topic, None, key="tombstone")
    assert producer.flush(20) == 0
    async with consumer() as member:
        records = await settle(member, 301)
    last = records.pop()
    assert (last.key, last.value, last.headers) == (b"tombstone", None, [])
    for number, record in enumerate(records):
        assert (record.key, record.value) == (f"key {number}".encode(), b"%d" % number * 50)
        assert record.headers == headers
        assert (record.timestamp, record.timestamp_type) == (1_700_000_000_000 + number, 0)


@in_loop
async def test_deserializers(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, [b'{"a": 1}', b"{", b"[2]"])
    async with consumer(value_deserializer=json.loads) as member:
        (first,) = await receive(member, 1)
        member.accept(first)
        with pytest.raises(DeserializationError) as refused:
            await member.poll(timeout=10)
        member.reject(refused.value.record)
        (last,) = await receive(member, 1)
        assert (first.value, refused.value.record.value, last.value) == ({"a": 1}, b"{", [2])
        assert isinstance(refused.value.__cause__, json.JSONDecodeError)
        assert (first.serialized_value_size, last.serialized_value_size) == (8, 3)
        member.accept(last)
        await commit(member)
    async with consumer() as successor:
        assert await nothing_comes(successor)


@in_loop
async def test_transaction_markers_are_no_records(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    if broker.kind == "apache":
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
        producer.init_transactions(20)
        for number in range(3):
            producer.begin_transaction()
            producer.produce(topic, b"%d" % number)
            producer.commit_transaction(20)
    else:
        produce(broker.bootstrap, topic, values(3))
    async with consumer() as member:
        assert [record.value for record in await settle(member, 3)] == values(3)
        assert await nothing_comes(member, 1)
    produce(broker.bootstrap, topic, [b"after"])
    async with consumer() as successor:
        assert [record.value for record in await receive(successor, 1)] == [b"after"]


@in_loop
async def test_new_partitions_are_consumed(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, [b"before"])
    async with consumer() as member:
        await settle(member, 1)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
        for partition in (1, 2):
            produce(broker.bootstrap, topic, [b"after"], partition=partition)
        assert {record.partition for record in await settle(member, 2)} == {1, 2}


@in_loop
async def test_members_share_one_partition(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    total = 3_000
    produce(broker.bootstrap, topic, values(total))
    seen: list[int] = []
    members = [consumer(max_poll_records=50) for _ in range(4)]

    async def work(index: int) -> None:
        async with members[index] as member:
            while len(seen) < total:
                batch = await member.poll(timeout=0.5)
                seen.extend(record.offset for record in batch)
                member.accept(batch)

    await asyncio.gather(*(work(index) for index in range(4)))
    assert sorted(seen) == list(range(total))


@in_loop
async def test_wakeup_interrupts_a_poll_and_a_close_ends_it(consumer: ConsumerMaker) -> None:
    member = consumer()
    loop = asyncio.get_running_loop()
    loop.call_later(0.2, lambda: loop.run_in_executor(None, member.wakeup))
    with pytest.raises(WakeupError):
        await member.poll()
    member.wakeup()
    with pytest.raises(WakeupError):
        await member.commit_sync()
    waiting = asyncio.create_task(member.poll())
    await asyncio.sleep(0.2)
    await member.close()
    with pytest.raises(ConsumerClosed):
        await waiting
    with pytest.raises(ConsumerClosed):
        await member.poll()
    assert [record async for record in member] == []


@in_loop
async def test_a_cancelled_poll_loses_nothing(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    async with consumer() as member:
        waiting = asyncio.create_task(member.poll())
        await asyncio.sleep(0.5)
        waiting.cancel()
        await asyncio.wait([waiting])
        produce(broker.bootstrap, topic, values(3))
        assert len(await settle(member, 3)) == 3


@in_loop
async def test_unsubscribing_leaves_and_a_new_subscription_joins(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker
) -> None:
    other = f"{group}-other"
    create_topic(broker.bootstrap, other)
    produce(broker.bootstrap, topic, [b"one"])
    produce(broker.bootstrap, other, [b"two"])
    async with consumer() as member:
        assert [record.value for record in await settle(member, 1)] == [b"one"]
        member.unsubscribe()
        with pytest.raises(RuntimeError, match="subscribe"):
            await member.poll()
        member.subscribe([other])
        assert [record.value for record in await settle(member, 1)] == [b"two"]
        assert member.assignment == {TopicPartition(other, 0)}


@in_loop
async def test_metrics_count_what_happens(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(10))
    async with consumer() as member:
        await settle(member, 10)
        metrics = {name.name: value for name, value in member.metrics().items()}
        assert metrics["records-fetched-total"] == metrics["acknowledgements-send-total"] == 10
        assert metrics["acknowledgements-error-total"] == 0
        assert metrics["heartbeat-total"] >= 1
        assert metrics["fetch-total"] >= 1
        assert 0 <= metrics["last-poll-seconds-ago"] < 20
        assert member.acquisition_lock_timeout_ms == 30_000


@in_loop
async def test_a_topic_that_does_not_exist_yet(broker: Broker, group: str, consumer: ConsumerMaker) -> None:
    name = f"{group}-later"
    async with consumer(topics=[name]) as member:
        assert await nothing_comes(member, 1)
        assert member.assignment == frozenset()
        create_topic(broker.bootstrap, name)
        produce(broker.bootstrap, name, values(1))
        assert len(await settle(member, 1)) == 1
