"""Records created, copied and pickled by an application."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.unit.client.scripted import ScriptedBroker, member
from tests.unit.client.virtual import in_virtual_time

from sharecore.client import AcknowledgeType, Record, ShareConsumer
from sharecore.errors import ErrorCode, KafkaError

FULL = {
    "topic": "jobs",
    "partition": 3,
    "offset": 2**40,
    "key": b"k",
    "value": {"text": ["a", None]},
    "headers": [("first", b"1"), ("none", None), ("first", "ä".encode())],
    "timestamp": 1_700_000_000_000,
    "timestamp_type": 1,
    "delivery_count": 4,
    "leader_epoch": 7,
    "serialized_key_size": 1,
    "serialized_value_size": 20,
}


@dataclass
class Order:
    number: int


def double(record: Record[bytes, Order]) -> int:
    return record.value.number * 2


def test_a_handler_is_tested_without_a_broker() -> None:
    assert double(Record(value=Order(21))) == 42


def test_what_is_not_given_has_a_default() -> None:
    record = Record(value=b"7")
    shown = {name: getattr(record, name) for name in FULL}
    assert shown == {
        "topic": "",
        "partition": 0,
        "offset": 0,
        "key": None,
        "value": b"7",
        "headers": [],
        "timestamp": -1,
        "timestamp_type": 0,
        "delivery_count": 1,
        "leader_epoch": -1,
        "serialized_key_size": -1,
        "serialized_value_size": 1,
    }
    assert record.lease is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"timestamp_type": 2},
        {"partition": "1"},
        {"headers": [("a", "text")]},
        {"topic": None},
        {"other": 1},
    ],
)
def test_what_no_record_can_have(wrong: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Record(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_keeps_everything(protocol: int) -> None:
    record: Record = Record(**FULL)  # type: ignore[arg-type]
    assert {name: getattr(record, name) for name in FULL} == FULL
    back = pickle.loads(pickle.dumps(record, protocol))
    assert {name: getattr(back, name) for name in FULL} == FULL
    assert back == record
    assert hash(back) == hash(record)
    assert repr(back) == repr(record)


@pytest.mark.parametrize("name", FULL)
def test_records_differ_by_what_they_hold(name: str) -> None:
    given = FULL | {name: Record(value=b"other").headers if name == "headers" else _other(FULL[name])}
    assert Record(**given) != Record(**FULL) or name.startswith("serialized")  # type: ignore[arg-type]


def _other(value: object) -> object:
    if isinstance(value, int):
        return 0
    return b"other" if isinstance(value, bytes) else "other"


def test_a_process_pool_takes_records_and_returns_them() -> None:
    record: Record = Record(**FULL)  # type: ignore[arg-type]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(copy.copy, [record, record]) == [record, record]


@in_virtual_time
async def test_a_copy_is_acknowledged_and_what_was_pickled_is_not() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 2)
    async with member(prefetch_records=0, value_deserializer=lambda value: [value]) as consumer:
        batch = await consumer.poll()
        assert copy.copy(batch[0]) is batch[0]
        deep = copy.deepcopy(batch[1])
        assert deep == batch[1]
        assert deep.value is not batch[1].value
        sent = pickle.loads(pickle.dumps(batch[2]))
        assert sent == batch[2]
        for call in _calls(consumer):
            with pytest.raises(KafkaError, match="not delivered by this consumer") as refused:
                call(sent)
            assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
        with pytest.raises(KafkaError, match="not delivered by this consumer"):
            await consumer.renew(sent)
        consumer.accept([batch[0], deep, batch[2]])
    assert broker.acknowledged == [(0, 2, b"\1")]


def _calls(consumer: ShareConsumer) -> tuple[Callable[[Record], object], ...]:
    return (
        consumer.accept,
        lambda record: consumer.acknowledge(record, AcknowledgeType.RENEW),
        lambda record: consumer.release([record]),
        lambda record: consumer.put_back([record]),
        consumer.lease,
    )
