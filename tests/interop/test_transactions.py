"""Transactions of stock producers, and what readers of committed records see of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, create_topic
from tests.interop.conftest import KIND, BrokerMaker

SETTINGS = {"transaction.state.log.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
_names = (f"tx-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("ledger"), KIND, SETTINGS)
    broker.start()
    yield broker
    broker.kill()


def transactional(broker: Broker, name: str, **configs: object) -> Producer:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": name, **QUIET}
    producer = Producer(settings | configs)
    producer.init_transactions(30)
    return producer


def write(producer: Producer, topic: str, values: list[bytes]) -> None:
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def read(
    broker: Broker, topic: str, isolation: str, *, until: int = 0, seconds: float = 10
) -> list[bytes | None]:
    """Values that a reader sees before the end, or once there are so many."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": not until,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and (not until or len(values) < until):
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            break
        values.append(message.value())
    consumer.close()
    return values


def test_readers_of_committed_records_see_whole_transactions(ledger: Broker) -> None:
    topic = next(_names)
    create_topic(ledger.bootstrap, topic)
    producer = transactional(ledger, topic)
    producer.begin_transaction()
    write(producer, topic, [b"a", b"b"])
    assert read(ledger, topic, "read_committed") == []
    assert read(ledger, topic, "read_uncommitted") == [b"a", b"b"]
    producer.commit_transaction(30)
    assert read(ledger, topic, "read_committed") == [b"a", b"b"]
    producer.begin_transaction()
    write(producer, topic, [b"c"])
    producer.abort_transaction(30)
    producer.begin_transaction()
    write(producer, topic, [b"d"])
    producer.commit_transaction(30)
    assert read(ledger, topic, "read_committed") == [b"a", b"b", b"d"]
    assert read(ledger, topic, "read_uncommitted") == [b"a", b"b", b"c", b"d"]


def test_consumed_offsets_and_produced_records_count_together(ledger: Broker) -> None:
    source, sink, group = next(_names), next(_names), next(_names)
    create_topic(ledger.bootstrap, source)
    create_topic(ledger.bootstrap, sink)
    plain = Producer({"bootstrap.servers": ledger.bootstrap, **QUIET})
    write(plain, source, [b"1", b"2"])
    producer = transactional(ledger, sink)
    consumer = Consumer(
        {
            "bootstrap.servers": ledger.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe([source])
    while consumer.poll(0.2) is None:
        pass

    def committed() -> int:
        return consumer.committed([TopicPartition(source, 0)], 10)[0].offset

    for offset, end in ((1, producer.abort_transaction), (2, producer.commit_transaction)):
        producer.begin_transaction()
        write(producer, sink, [b"out %d" % offset])
        wanted = [TopicPartition(source, 0, offset)]
        producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata(), 30)
        end(30)
    assert committed() == 2
    assert read(ledger, sink, "read_committed") == [b"out 2"]
    consumer.close()


def test_a_second_producer_fences_the_first(ledger: Broker) -> None:
    topic = next(_names)
    create_topic(ledger.bootstrap, topic)
    first = transactional(ledger, topic)
    first.begin_transaction()
    write(first, topic, [b"lost"])
    second = transactional(ledger, topic)
    second.begin_transaction()
    write(second, topic, [b"kept"])
    second.commit_transaction(30)
    with pytest.raises(KafkaException, match="FENCED"):
        first.commit_transaction(30)
    assert read(ledger, topic, "read_committed") == [b"kept"]


def test_a_producer_that_dies_does_not_hold_readers_up_for_ever(ledger: Broker) -> None:
    topic = next(_names)
    create_topic(ledger.bootstrap, topic)
    dying = transactional(ledger, topic, **{"transaction.timeout.ms": 2000})
    dying.begin_transaction()
    write(dying, topic, [b"never"])
    write(Producer({"bootstrap.servers": ledger.bootstrap, **QUIET}), topic, [b"behind"])
    assert read(ledger, topic, "read_committed") == []
    # Kafka checks for such transactions every ten seconds
    assert read(ledger, topic, "read_committed", until=1, seconds=20) == [b"behind"]


def test_open_and_committed_transactions_outlive_the_broker(new_broker: BrokerMaker) -> None:
    broker = new_broker(**SETTINGS)
    broker.start()
    create_topic(broker.bootstrap, "t")
    producer = transactional(broker, "tx")
    producer.begin_transaction()
    write(producer, "t", [b"committed"])
    producer.commit_transaction(30)
    producer.begin_transaction()
    write(producer, "t", [b"open"])
    broker.kill()
    broker.start()
    assert read(broker, "t", "read_committed") == [b"committed"]
    write(producer, "t", [b"more"])
    producer.commit_transaction(30)
    assert read(broker, "t", "read_committed") == [b"committed", b"open", b"more"]
    broker.kill()
    broker.start()
    assert read(broker, "t", "read_committed") == [b"committed", b"open", b"more"]


def test_javas_producer_with_the_newer_transactions(ledger: Broker) -> None:
    topic = next(_names)
    create_topic(ledger.bootstrap, topic)
    printed = java.run(
        f"{java.TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
        *("--bootstrap-server", ledger.bootstrap, "--transactional-id", topic),
        *("--transaction-duration-ms", "100"),
    )
    assert "20000 records sent" in printed
    assert len(read(ledger, topic, "read_committed")) == 20000
    listed = java.run(
        f"{java.TOOLS}.TransactionsCommand",
        *("--bootstrap-server", ledger.bootstrap, "describe", "--transactional-id", topic),
    )
    assert "CompleteCommit" in listed


def test_who_has_written_to_a_partition_is_described(ledger: Broker) -> None:
    topic, name = next(_names), next(_names)
    create_topic(ledger.bootstrap, topic)
    plain = Producer({"bootstrap.servers": ledger.bootstrap, "enable.idempotence": True, **QUIET})
    plain.produce(topic, b"a")
    assert plain.flush(30) == 0
    producer = transactional(ledger, name)
    producer.begin_transaction()
    write(producer, topic, [b"b", b"c"])

    def described() -> list[list[str]]:
        """Epoch, coordinator epoch, last sequence and start of the open transaction, a row a producer."""
        at = ("--bootstrap-server", ledger.bootstrap, "describe-producers")
        shown = java.run(
            f"{java.TOOLS}.TransactionsCommand", *at, "--topic", topic, "--partition", "0"
        ).splitlines()
        head = shown[0].split()
        wanted = ("ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "CurrentTransactionStartOffset")
        return sorted([line.split()[head.index(name)] for name in wanted] for line in shown[1:])

    assert described() == [["0", "-1", "0", "None"], ["0", "-1", "1", "1"]]
    producer.commit_transaction(30)
    until = time.monotonic() + 20
    while (rows := described())[-1] != ["0", "0", "1", "None"]:
        assert time.monotonic() < until, rows
