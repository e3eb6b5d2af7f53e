"""Share groups as confluent-kafka's ShareConsumer sees them."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Message
from tests.harness.broker import Broker
from tests.harness.clients import (
    ACCEPT,
    REJECT,
    RELEASE,
    commit,
    configure_group,
    create_topic,
    nothing_comes,
    produce,
    settle,
    share_consumer,
    take,
)


def values(count: int) -> list[bytes]:
    return [b"value-%d" % number for number in range(count)]


def delivered(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    return sorted((message.offset(), message.delivery_count()) for message in messages)


def test_implicit_mode_accepts_with_the_next_poll(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, values(500))
    seen: list[Message] = []
    with share_consumer(
        broker.bootstrap, group, [topic], **{"share.acknowledgement.mode": "implicit"}
    ) as consumer:
        until = time.monotonic() + 20
        while len(seen) < 500 and time.monotonic() < until:
            seen += list(consumer.poll(0.5))
        commit(consumer)
    assert [message.value() for message in seen] == values(500)
    assert {message.delivery_count() for message in seen} == {1}
    with share_consumer(broker.bootstrap, group, [topic]) as again:
        assert nothing_comes(again)


def test_accepted_records_do_not_come_back(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, values(100))
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        seen = settle(consumer, 100)
    assert delivered(seen) == [(offset, 1) for offset in range(100)]
    with share_consumer(broker.bootstrap, group, [topic]) as again:
        assert nothing_comes(again)


def test_released_records_come_back_counted(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, values(10))
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        first = settle(consumer, 10, lambda message: RELEASE if (message.offset() or 0) % 2 else ACCEPT)
        second = settle(consumer, 5)
        assert nothing_comes(consumer)
    assert delivered(first) == [(offset, 1) for offset in range(10)]
    assert delivered(second) == [(offset, 2) for offset in (1, 3, 5, 7, 9)]


def test_rejected_records_never_come_back(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, values(10))
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 10, lambda message: REJECT if message.offset() == 4 else ACCEPT)
        assert nothing_comes(consumer)
    with share_consumer(broker.bootstrap, group, [topic]) as again:
        assert nothing_comes(again)


def test_a_lock_that_runs_out_gives_the_records_to_the_next(broker: Broker, topic: str, group: str) -> None:
    configure_group(broker.bootstrap, group, share_record_lock_duration_ms=1500)
    produce(broker.bootstrap, topic, values(5))
    with share_consumer(broker.bootstrap, group, [topic]) as slow:
        taken = take(slow, 5)
        with share_consumer(broker.bootstrap, group, [topic]) as next_one:
            again = take(next_one, 5)
            assert delivered(again) == [(offset, 2) for offset in range(5)]
            for message in taken:
                slow.acknowledge(message, ACCEPT)
            (error,) = slow.commit_sync(10.0).values()
            assert error is not None
            assert error.args[0].code() == KafkaError.INVALID_RECORD_STATE
            for message in again:
                next_one.acknowledge(message, ACCEPT)
            commit(next_one)


def test_the_delivery_limit_archives(broker: Broker, topic: str, group: str) -> None:
    configure_group(broker.bootstrap, group, share_delivery_count_limit=2)
    produce(broker.bootstrap, topic, values(3))
    counts: dict[int, list[int]] = {0: [], 1: [], 2: []}
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        for message in settle(consumer, 4, lambda message: RELEASE if message.offset() == 1 else ACCEPT):
            counts[message.offset() or 0].append(message.delivery_count() or 0)
        assert nothing_comes(consumer)
        produce(broker.bootstrap, topic, values(1))
        assert delivered(settle(consumer, 1)) == [(3, 1)]
    assert counts == {0: [1], 1: [1, 2], 2: [1]}


def test_closing_hands_back_what_was_not_acknowledged(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, values(5))
    with share_consumer(broker.bootstrap, group, [topic]) as leaving:
        taken = take(leaving, 5)
        for message in taken[:2]:
            leaving.acknowledge(message, ACCEPT)
        commit(leaving)
    with share_consumer(broker.bootstrap, group, [topic]) as successor:
        assert [message.offset() for message in settle(successor, 3, timeout=10)] == [2, 3, 4]


def test_what_is_acknowledged_right_before_closing_counts(broker: Broker, topic: str, group: str) -> None:
    """Closing sends what is left of it while the member leaves over another connection."""
    produce(broker.bootstrap, topic, values(100))
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        for message in take(consumer, 100):
            consumer.acknowledge(message, ACCEPT)
            consumer.commit_async()
    with share_consumer(broker.bootstrap, group, [topic]) as again:
        assert nothing_comes(again, 7.0)


def test_two_groups_each_get_everything(broker: Broker, topic: str, group: str) -> None:
    other = f"{group}-other"
    configure_group(broker.bootstrap, other, share_auto_offset_reset="earliest")
    produce(broker.bootstrap, topic, values(50))
    for name in (group, other):
        with share_consumer(broker.bootstrap, name, [topic]) as consumer:
            assert delivered(settle(consumer, 50)) == [(offset, 1) for offset in range(50)]


def test_a_new_group_starts_at_the_end_unless_told(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, values(10))
    with share_consumer(broker.bootstrap, f"latest-of-{topic}", [topic]) as consumer:
        assert nothing_comes(consumer, 7)
        produce(broker.bootstrap, topic, [b"new"])
        assert [message.value() for message in settle(consumer, 1)] == [b"new"]


def test_every_partition_of_every_topic(broker: Broker, group: str) -> None:
    topics = [f"{group}-a", f"{group}-b"]
    for name in topics:
        create_topic(broker.bootstrap, name, partitions=4)
        for partition in range(4):
            produce(broker.bootstrap, name, values(25), partition=partition)
    with share_consumer(broker.bootstrap, group, topics) as consumer:
        seen = settle(consumer, 200)
    assert len({(message.topic(), message.partition(), message.offset()) for message in seen}) == 200


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive_as_they_were_sent(broker: Broker, topic: str, group: str, codec: str) -> None:
    sent = [b"%d" % number * 100 for number in range(200)]
    produce(broker.bootstrap, topic, sent, 0, **{"compression.type": codec, "enable.idempotence": True})
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        assert [message.value() for message in settle(consumer, 200)] == sent
