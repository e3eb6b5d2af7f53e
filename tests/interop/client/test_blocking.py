"""The blocking consumer: refusals at the call, and calls that are interrupted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import produce
from tests.interop.client.receive import values

from sharecore.client import AcknowledgeType, ConsumerClosed, LeaseLost, Record
from sharecore.client.blocking import ShareConsumer
from sharecore.errors import ErrorCode, KafkaError

Maker = Callable[..., ShareConsumer]


@pytest.fixture
def blocking(broker: Broker, topic: str, group: str) -> Maker:
    """Make members of the test's group, subscribed to its topic, in explicit mode unless told."""

    def make(**settings: object) -> ShareConsumer:
        chosen = {"group_id": group, "share_acknowledgement_mode": "explicit"} | settings
        made = ShareConsumer(bootstrap_servers=broker.bootstrap, **chosen)
        made.subscribe([topic])
        return made

    return make


class Interrupted(BaseException):
    """What Ctrl-C raises, in a test that must survive it."""


@pytest.fixture
def interrupts() -> Iterator[int]:
    """Provide the number of a signal that raises Interrupted in the main thread."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield signal.SIGUSR1
    signal.signal(signal.SIGUSR1, before)


def taken(consumer: ShareConsumer, count: int) -> list[Record]:
    records: list[Record] = []
    until = time.monotonic() + 20
    while len(records) < count and time.monotonic() < until:
        records += consumer.poll(timeout=1)
    assert len(records) == count
    return records


@pytest.mark.parametrize("by", ["poll", "iteration"])
def test_what_an_interrupted_call_took_is_not_accepted(
    broker: Broker, topic: str, blocking: Maker, interrupts: int, by: str
) -> None:
    produce(broker.bootstrap, topic, values(3), **{"linger.ms": 500})
    caught = threading.Event()
    calls = []

    def deserialize(value: bytes) -> bytes:
        calls.append(value)
        if len(calls) == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, interrupts)
            assert caught.wait(10)
        return b"<%s>" % value

    with blocking(share_acknowledgement_mode="implicit", value_deserializer=deserialize) as consumer:
        with pytest.raises(Interrupted):
            consumer.poll() if by == "poll" else next(consumer)
        caught.set()
        assert consumer.commit_sync(20) == {}
        records = taken(consumer, 3)
        assert [record.value for record in records] == [b"<0>", b"<1>", b"<2>"]
        assert {record.delivery_count for record in records} == {1}
        assert sorted(calls) == values(3)


def test_the_end_of_a_block_accepts_nothing(broker: Broker, topic: str, blocking: Maker) -> None:
    produce(broker.bootstrap, topic, values(30), **{"linger.ms": 500})
    with blocking(share_acknowledgement_mode="implicit") as consumer:
        for record in consumer.poll(30, timeout=20):
            if record.offset == 2:
                break
    with blocking(share_acknowledgement_mode="implicit") as consumer:
        assert {record.delivery_count for record in taken(consumer, 30)} == {2}


def test_a_record_that_is_not_held_is_refused_at_the_call(
    broker: Broker, topic: str, blocking: Maker
) -> None:
    produce(broker.bootstrap, topic, values(5), **{"linger.ms": 500})
    with blocking() as other:
        consumer = blocking()
        batch = consumer.poll(5, timeout=20)
        assert len(batch) == 5
        consumer.release(batch[0])
        consumer.accept(batch[0])
        assert list(consumer.commit_sync(20).values()) == [None]
        calls: tuple[Callable[[], object], ...] = (
            lambda: consumer.accept(batch[0]),
            lambda: consumer.accept([batch[1], batch[0]]),
            lambda: consumer.renew(batch[0]),
            lambda: other.accept(batch[1]),
        )
        for call in calls:
            with pytest.raises(KafkaError) as refused:
                call()
            assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
        # a list that is reused, and an iterator that can be read only once
        several = [batch[1], batch[2]]
        consumer.accept(several)
        several.clear()
        consumer.accept(record for record in [batch[3]])
        consumer.accept(batch[4])
        assert list(consumer.close(20).values()) == [None]
        with pytest.raises(ConsumerClosed):
            consumer.accept(batch[1])
        assert not other.poll(timeout=1)


def test_a_block_over_a_lost_lock_does_not_begin(broker: Broker, topic: str, blocking: Maker) -> None:
    produce(broker.bootstrap, topic, values(1))
    with blocking() as consumer:
        batch = consumer.poll(timeout=20)
        for link in consumer._inner._runtime.links.values():
            consumer._call(link.abandon)
        ran = False
        with pytest.raises(LeaseLost), consumer.lease(batch):
            ran = True
        assert not ran
        consumer.acknowledge(batch, AcknowledgeType.RELEASE)


def test_arguments_that_cannot_be(blocking: Maker) -> None:
    with blocking() as consumer:
        with pytest.raises(ValueError, match="timeout=-1"):
            consumer.close(-1)
        with pytest.raises(ValueError, match="timeout=-1"):
            consumer.poll(timeout=-1)
        # the consumer is still open
        assert not consumer.poll(timeout=0)
