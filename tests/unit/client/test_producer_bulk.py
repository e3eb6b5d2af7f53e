"""Confirmations of a `send_many`: each record's position, in any order of responses."""

from __future__ import annotations

import random
from typing import Any

from confluent_kafka import KafkaError as RdkafkaError
from confluent_kafka import Message, Producer

from sharecore.client.producing import bulk as module
from sharecore.client.producing.bulk import Bulk, Callback
from sharecore.client.producing.failures import kafka_error
from sharecore.client.producing.records import Sent, SentRecords
from sharecore.errors import ErrorCode, KafkaError


def confirmed(partition: int, offset: int) -> Message:
    return Message(topic="jobs", partition=partition, offset=offset, timestamp=(1, 1_000 + offset))


class Sender:
    """Accepts callbacks for records, like the engine."""

    def __init__(self) -> None:
        self.unused: list[Callback] = []
        self.made = 0

    def take(self, bulk: Bulk, index: int) -> Callback:
        self.made += not self.unused
        callback = self.unused.pop() if self.unused else Callback(self.unused)
        callback.bulk, callback.index = bulk, index
        return callback


def test_each_record_gets_its_own_answer_in_any_order() -> None:
    sender, ended = Sender(), list[SentRecords]()
    bulks = [Bulk("jobs", 200, kafka_error, ended.append) for _ in range(2)]
    waiting: list[tuple[Callback, Message]] = []
    draw = random.Random(7)
    for index in range(200):
        for partition, bulk in enumerate(bulks):
            waiting.append((sender.take(bulk, index), confirmed(partition, index)))
        while len(waiting) > 20:
            callback, message = waiting.pop(draw.randrange(len(waiting)))
            callback(None, message)
    assert not ended
    for callback, message in waiting:
        callback(None, message)
    assert len(ended) == 2
    for results in ended:
        (partition,) = set(results.partitions)
        assert list(results) == [Sent("jobs", partition, index, 1_000 + index) for index in range(200)]
    assert sender.made <= 22, "callbacks are used again"


def test_a_failure_is_noted_for_its_record_alone() -> None:
    sender, ended = Sender(), list[Any]()
    bulk = Bulk("jobs", 3, kafka_error, ended.append)
    callbacks = [sender.take(bulk, index) for index in range(3)]
    callbacks[1](RdkafkaError(RdkafkaError._MSG_TIMED_OUT), None)
    callbacks[2](None, confirmed(0, 5))
    callbacks[0](None, confirmed(0, 4))
    (results,) = ended
    assert {index: error.code for index, error in results.failures.items()} == {
        1: ErrorCode.REQUEST_TIMED_OUT
    }
    assert list(results)[::2] == [Sent("jobs", 0, 4, 1004), Sent("jobs", 0, 5, 1005)]


def test_records_behind_one_that_cannot_be_sent_fail_and_none_is_waited_for() -> None:
    sender, ended = Sender(), list[Any]()
    bulk = Bulk("jobs", 3, kafka_error, ended.append)
    first = sender.take(bulk, 0)
    bulk.not_sent(1, KafkaError(ErrorCode.INVALID_REQUEST, "no"))
    assert not ended
    first(None, confirmed(0, 0))
    assert set(ended[0].failures) == {1, 2}
    Bulk("jobs", 0, kafka_error, ended.append)
    assert len(ended) == 2


def test_callbacks_that_are_kept_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "UNUSED_MAX", 4)
    sender = Sender()
    bulk = Bulk("jobs", 10, kafka_error, lambda _: None)
    for callback in [sender.take(bulk, index) for index in range(10)]:
        callback(None, confirmed(0, 0))
    assert len(sender.unused) == 4


def test_librdkafka_takes_a_callback() -> None:
    producer, ended = Producer({"message.timeout.ms": 1}), list[Any]()
    bulk = Bulk("jobs", 1, kafka_error, ended.append)
    producer.produce("jobs", b"1", on_delivery=Sender().take(bulk, 0))
    producer.purge()
    producer.flush(20)
    assert len(ended[0].failures) == 1
