"""The producers: what they send, where it goes, and what they say when it cannot be sent."""

from __future__ import annotations

import asyncio
import json
import random
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.harness import java
from tests.harness.aio import in_loop
from tests.harness.broker import Broker, free_port
from tests.harness.clients import QUIET, create_topic

from sharecore.client import BlockingProducer, NewRecord, Producer, ProducerClosed, RecordsNotSent, Sent
from sharecore.errors import ErrorCode, KafkaError

KEYS, PARTITIONS = 100_000, 13


def read(
    bootstrap: str, topic: str, count: int, *, partitions: int = 1, isolation: str = "read_committed"
) -> list[Any]:
    """Messages of a topic, in the order of each partition; fails where they are not as many in time."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation, **QUIET}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[Any] = []
    until = time.monotonic() + 30
    try:
        while len(found) < count and time.monotonic() < until:
            found += consumer.consume(10_000, 0.2)
        # any surplus
        found += consumer.consume(10_000, 0.5)
    finally:
        consumer.close()
    assert [message.error() for message in found if message.error()] == []
    assert len(found) == count
    return found


class Model:
    """What is enough of a model of pydantic."""

    def __init__(self, number: int) -> None:
        self.number = number

    def model_dump_json(self) -> str:
        return json.dumps({"number": self.number})

    def model_dump(self, *, mode: str) -> dict[str, int]:
        assert mode == "json"
        return {"number": self.number}


@dataclass
class Order:
    number: int
    lines: list[Model]


VALUES = {
    "bytes": (b"\xff\x00", b"\xff\x00"),
    "empty": (b"", b""),
    "none": (None, None),
    "string": ("äö", "äö".encode()),
    "view": (memoryview(b"abc")[1:], b"bc"),
    "mapping": ({"a": [1, None, "ä"]}, '{"a":[1,null,"ä"]}'.encode()),
    "number": (7, b"7"),
    "model": (Model(3), b'{"number": 3}'),
    "dataclass": (Order(1, [Model(2)]), b'{"number":1,"lines":[{"number":2}]}'),
}


@in_loop
async def test_values_of_each_type(broker: Broker, topic: str) -> None:
    async with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value, _ in VALUES.values():
            await producer.send(topic, value)
        await producer.send_many(topic, [value for value, _ in VALUES.values()])
        for nonsense in (object(), {1, 2}, [object()], {"a": object()}):
            with pytest.raises(TypeError, match="cannot be sent"):
                await producer.send(topic, nonsense)
            with pytest.raises(TypeError, match="cannot be sent"):
                await producer.send_many(topic, [b"not sent", nonsense])
    expected = [sent for _, sent in VALUES.values()]
    assert [message.value() for message in read(broker.bootstrap, topic, 2 * len(VALUES))] == 2 * expected


@in_loop
async def test_all_that_a_record_has(broker: Broker, group: str) -> None:
    topic = f"all-{group}"
    create_topic(broker.bootstrap, topic, 3)
    headers = [("first", b"1"), ("none", None), ("first", "ä")]
    moment = 1_700_000_000_123
    settings = {"bootstrap.servers": [broker.bootstrap], "value.serializer": str.encode}
    async with Producer(settings) as producer:
        sent = await producer.send(topic, "v", key={"id": 1}, headers=headers, partition=2, timestamp=moment)
        assert sent == Sent(topic, 2, 0, moment)
        records = [NewRecord("x", b"k", {"a": b"b"}, 2, moment + 1), NewRecord("y", partition=2)]
        many = await producer.send_many(topic, records)
        assert many[0] == Sent(topic, 2, 1, moment + 1)
        assert [each.offset for each in many] == [1, 2]
    first, second, third = read(broker.bootstrap, topic, 3, partitions=3)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b'{"id":1}', b"v", moment)
    assert first.headers() == [("first", b"1"), ("none", None), ("first", "ä".encode())]
    assert (second.key(), second.headers()) == (b"k", [("a", b"b")])
    assert third.key() is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"topic": ""},
        {"partition": -1},
        {"timestamp": 0},
        {"headers": {"a": 5}},
        {"headers": [(b"a", b"b")]},
        {"key": object()},
    ],
)
def test_what_is_no_record(broker: Broker, topic: str, wrong: dict[str, Any]) -> None:
    with BlockingProducer(bootstrap_servers=broker.bootstrap) as producer:
        with pytest.raises((TypeError, ValueError)):
            producer.send(**{"topic": topic, "value": b"v", **wrong})
        assert producer.send(topic, b"v").offset == 0


@in_loop
async def test_calls_keep_their_order_and_wait_for_space(broker: Broker, topic: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 10}
    async with Producer(settings) as producer:
        sent = await asyncio.gather(*(producer.send(topic, b"%d" % number) for number in range(1_000)))
        assert [each.offset for each in sent] == list(range(1_000))
        many = await producer.send_many(topic, [b"%d" % number for number in range(1_000, 2_000)])
        assert [each.offset for each in many] == list(range(1_000, 2_000))
        assert await producer.flush()
    values = [int(message.value()) for message in read(broker.bootstrap, topic, 2_000)]
    assert values == list(range(2_000))


def test_a_blocking_producer_waits_for_space(broker: Broker, topic: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 10}
    with BlockingProducer(settings) as producer:
        futures = [producer.submit(topic, b"%d" % number) for number in range(1_000)]
        assert [future.result(30).offset for future in futures] == list(range(1_000))
        assert len(producer.send_many(topic, [b"x"] * 1_000)) == 1_000


@in_loop
async def test_a_refusal_has_kafkas_code(broker: Broker, topic: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "max.request.size": 5_000_000}
    async with Producer(settings) as producer:
        for size in (3_000_000, 6_000_000):  # refused by the broker, and by the producer itself
            with pytest.raises(
                KafkaError, match=r"raise max\.request\.size .* and max\.message\.bytes"
            ) as refused:
                await producer.send(topic, bytes(size))
            assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(KafkaError) as refused:
            await producer.send(topic, b"v", partition=5)
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(RecordsNotSent, match="2 of 3 records were not confirmed") as some:
            await producer.send_many(topic, [b"first", bytes(6_000_000), b"behind it"])
        assert some.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert [isinstance(result, Sent) for result in some.value.results] == [True, False, False]
    with pytest.raises(ProducerClosed):
        await producer.send(topic, b"v")
    await producer.close()
    assert [message.value() for message in read(broker.bootstrap, topic, 1)] == [b"first"]


@in_loop
async def test_nobody_is_there() -> None:
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "bootstrap.servers": address,
        "delivery.timeout.ms": 1_500,
        "max.block.ms": 200,
        "queue.buffering.max.messages": 2,
    }
    async with Producer(settings) as producer:
        outcomes = await asyncio.gather(*(producer.send("t", b"v") for _ in range(4)), return_exceptions=True)
        assert [isinstance(each, KafkaError) and each.code for each in outcomes] == [
            ErrorCode.REQUEST_TIMED_OUT
        ] * 4
        assert "max.block.ms=200" in str(outcomes[-1])
        assert "not confirmed within 1.5 s" in str(outcomes[0])
        with pytest.raises(RecordsNotSent):
            await producer.send_many("t", [b"v"] * 4)


@in_loop
async def test_closing_fails_what_is_not_confirmed_in_time() -> None:
    producer = Producer(bootstrap_servers=f"127.0.0.1:{free_port()}")
    sending = asyncio.create_task(producer.send("t", b"v"))
    await asyncio.sleep(0.1)
    await producer.close(0.2)
    with pytest.raises(KafkaError, match="closed before the record was confirmed"):
        await sending


@in_loop
async def test_transactions(broker: Broker, topic: str, group: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": group}

    async def abort(error: BaseException) -> None:
        async with producer.transaction():
            await producer.send(topic, b"aborted")
            await producer.send_many(topic, [b"aborted"] * 3)
            raise error

    async with Producer(settings) as producer:
        async with producer.transaction():
            await producer.send(topic, b"1")
            await producer.send_many(topic, [b"2", b"3"])
            with pytest.raises(RuntimeError, match="in progress"):
                async with producer.transaction():
                    pass
        for error in (ZeroDivisionError(), asyncio.CancelledError()):
            with pytest.raises(type(error)):
                await abort(error)
        with pytest.raises(KafkaError) as outside:
            await producer.send(topic, b"outside")
        assert outside.value.code is ErrorCode.INVALID_TXN_STATE
        async with producer.transaction():
            await producer.send(topic, b"4")
        with BlockingProducer(settings) as newer:
            with newer.transaction():
                newer.send(topic, b"5")
            with pytest.raises(KafkaError) as fenced:
                async with producer.transaction():
                    await producer.send(topic, b"fenced")
            assert fenced.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
            with pytest.raises(ZeroDivisionError), newer.transaction():
                assert newer.send(topic, b"aborted").offset // 0
    values = [message.value() for message in read(broker.bootstrap, topic, 5)]
    assert values == [b"1", b"2", b"3", b"4", b"5"]


@in_loop
async def test_a_transaction_needs_its_id(broker: Broker) -> None:
    async with Producer(bootstrap_servers=broker.bootstrap) as producer:
        with pytest.raises(RuntimeError, match=r"transactional\.id"):
            async with producer.transaction():
                pass


PAGE = Path(__file__).parents[3] / "docs/producer.md"


def test_what_the_page_shows_runs(own_broker: Broker) -> None:
    create_topic(own_broker.bootstrap, "jobs", 2)
    blocks = [block.split("```")[0] for block in PAGE.read_text().split("```python\n")[1:]]
    shown = [
        subprocess.run(
            [sys.executable, "-c", block.replace("localhost:9092", own_broker.bootstrap)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for block in blocks
    ]
    assert len(shown) == 3
    assert shown[0].startswith("jobs-")
    assert shown[1].strip().isdecimal()
    assert len(read(own_broker.bootstrap, "jobs", 8, partitions=2)) == 8


BLOCKING = """
import sys
from sharecore.client import BlockingProducer

producer = BlockingProducer({"bootstrap.servers": sys.argv[1], "linger.ms": 2000})
for number in range(100):
    producer.submit(sys.argv[2], b"%d" % number)
"""
ASYNCIO = """
import asyncio, sys
from sharecore.client import Producer

async def main():
    producer = Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 2000})
    tasks = [asyncio.ensure_future(producer.send(sys.argv[2], b"%d" % number)) for number in range(100)]
    await asyncio.sleep(0)
    raise SystemExit(3)

asyncio.run(main())
"""


@pytest.mark.parametrize(("program", "status"), [(BLOCKING, 0), (ASYNCIO, 3)])
def test_a_program_that_closes_nothing_sends_all(
    broker: Broker, topic: str, program: str, status: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, broker.bootstrap, topic],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    assert [int(message.value()) for message in read(broker.bootstrap, topic, 100)] == list(range(100))


def test_a_producer_that_is_forgotten_sends_all(broker: Broker, topic: str) -> None:
    def forget() -> None:
        producer = BlockingProducer({"bootstrap.servers": broker.bootstrap, "linger.ms": 500})
        for number in range(100):
            producer.submit(topic, b"%d" % number)

    forget()
    assert len(read(broker.bootstrap, topic, 100)) == 100


@pytest.mark.long
def test_a_key_goes_where_javas_producer_sends_it(shared_broker: Broker, tmp_path: Path, group: str) -> None:
    topics = [f"{group}-java", f"{group}-ours"]
    for name in topics:
        create_topic(shared_broker.bootstrap, name, PARTITIONS)
    chance = random.Random(KEYS)
    keys = [
        b"",
        b"\x00",
        "ключ".encode(),
        *(chance.randbytes(chance.randint(0, 40)) for _ in range(KEYS - 3)),
    ]
    file = tmp_path / "keys"
    file.write_bytes(
        b"".join([struct.pack(">i", len(keys)), *(struct.pack(">i", len(key)) + key for key in keys)])
    )
    source = java.PROBES / "PartitionProbe.java"
    told = java.run_program(source, shared_broker.bootstrap, topics[0], str(file), libs=java.CLIENT_LIBS)
    (line,) = [line for line in told.splitlines() if line.startswith("partitions ")]
    theirs = [int(partition) for partition in line.split()[1:]]
    with BlockingProducer(bootstrap_servers=shared_broker.bootstrap) as producer:
        ours = [
            sent.partition for sent in producer.send_many(topics[1], [NewRecord(None, key) for key in keys])
        ]
    assert len(ours) == KEYS
    assert ours == theirs
    assert len(set(ours)) == PARTITIONS
