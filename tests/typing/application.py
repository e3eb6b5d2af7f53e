# pyright: strict
"""An application with workers, a producer, a consumer and tests, as type checkers in strict mode see it.

`test_typing.py` has mypy and pyright check this file; nothing runs it. `assert_type` says what they infer.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import assert_type

from sharecore.client import (
    AcknowledgeType,
    Batch,
    BlockingProducer,
    Health,
    NewRecord,
    Producer,
    Record,
    RecordsNotSent,
    Reject,
    Release,
    Retry,
    Sent,
    SentRecords,
    ShareConsumer,
    TopicPartition,
    Worker,
    run_until_signal,
    worker,
)
from sharecore.client.blocking import ShareConsumer as BlockingConsumer
from sharecore.errors import KafkaError
from sharecore.testing import EphemeralBroker


@dataclass(frozen=True)
class Order:
    number: int
    customer: str


def read_order(data: bytes) -> Order:
    return Order(**json.loads(data))


def write_order(order: Order) -> bytes:
    return json.dumps(asdict(order)).encode()


# handlers


@worker("orders", group_id="billing", concurrency=8, retry=Retry(attempts=3), value_deserializer=read_order)
async def bill(record: Record[bytes | None, Order]) -> None:
    assert_type(record.key, bytes | None)
    assert_type(record.value, Order)
    if record.value.number < 0:
        raise Reject(f"order {record.value.number}")


@worker("orders", group_id="shipping", health_port=8081)
def ship(record: Record[str, Order]) -> int:
    if record.delivery_count > 2:
        raise Release
    return record.value.number


@worker("lines")
def count(record: Record) -> None:
    """A record without parameters has bytes, or whatever the deserializers make."""
    print(record.topic, record.partition, record.offset, record.headers)


async def serve() -> None:
    assert_type(bill.name, str)
    health: Health = bill.health()
    assert_type(health.ready, bool)
    assert_type(health.reason, str | None)
    await run_until_signal(bill, {"bootstrap.servers": "localhost:9092"})


def names_of(workers: list[Worker]) -> list[str]:
    return [each.name for each in workers]


# producers


async def produce(order: Order) -> int:
    async with Producer({"bootstrap.servers": "localhost:9092"}, value_serializer=write_order) as producer:
        sent = await producer.send("orders", order, key=order.customer, headers={"trace": "42"})
        assert_type(sent, Sent)
        assert_type(sent.offset, int)
        several = await producer.send_many("orders", [order, NewRecord(order, key=b"k", partition=1)])
        assert_type(several, SentRecords)
        assert_type(several[0], Sent)
        assert_type(several[1:], list[Sent])
        async with producer.transaction():
            await producer.send("orders", order)
        assert_type(await producer.flush(1.0), bool)
        return sum(each.offset for each in several)


def produce_blocking(order: Order) -> Sent:
    with BlockingProducer(bootstrap_servers="localhost:9092") as producer:
        later = producer.submit("orders", write_order(order))
        assert_type(later, Future[Sent])
        try:
            producer.send_many("orders", [b"one", "two", {"three": 3}])
        except RecordsNotSent as error:
            assert_type(error.results, list[Sent | KafkaError])
        with producer.transaction():
            producer.send("orders", b"four")
        return later.result()


# consumers


async def consume() -> None:
    async with ShareConsumer(
        bootstrap_servers="localhost:9092", group_id="g", share_acknowledgement_mode="explicit"
    ) as consumer:
        consumer.subscribe(["orders"])
        batch = await consumer.poll(timeout=1.0)
        assert_type(batch, Batch)
        for record in batch:
            async with consumer.lease(record):
                print(record.value)
        consumer.acknowledge(batch, AcknowledgeType.RELEASE)
        assert_type(await consumer.commit_sync(), dict[TopicPartition, KafkaError | None])
        async for each in consumer:
            consumer.accept(each)


def consume_blocking() -> None:
    with BlockingConsumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}) as consumer:
        consumer.subscribe(["orders"])
        for record in consumer.poll(10, timeout=1.0):
            print(record.value)


# tests of the application


def test_an_order_is_shipped() -> None:
    record = Record(key="customer", value=Order(7, "customer"), topic="orders")
    assert_type(record, Record[str, Order])
    assert ship(record) == 7


def test_with_the_fixtures(
    sharecore_broker: EphemeralBroker, sharecore_topic: str, sharecore_group: str
) -> None:
    settings = {**sharecore_broker.config, "group.id": sharecore_group}
    with BlockingProducer(sharecore_broker.config) as producer, BlockingConsumer(settings) as consumer:
        producer.send(sharecore_topic, b"640")
        consumer.subscribe([sharecore_topic])
        sharecore_broker.advance_blocking(seconds=30)


async def test_without_pytest() -> None:
    async with EphemeralBroker({"num.partitions": "4"}) as broker:
        await broker.create_topic("orders", partitions=2)
        await broker.create_group("billing", {"share.delivery.count.limit": "3"})
        assert_type(broker.bootstrap_server, str)
        await broker.advance(seconds=30)
