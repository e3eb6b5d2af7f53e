"""Why records of a group do not come, as `sharecore groups describe` and `peek` tell it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, REJECT, RELEASE, commit, configure_group, produce, share_consumer
from tests.interop.conftest import KIND
from tests.interop.test_admin import sharecore

from sharecore.admin import BlockingAdmin
from sharecore.admin.waiting import Reason, Waiting, describe_reason
from sharecore.client import Record, worker

PATIENCE_S = 30
ours = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")


def asked(broker: Broker, group: str) -> Waiting:
    with BlockingAdmin(bootstrap_servers=broker.bootstrap) as admin:
        return admin.waiting_of(group, [each.partition for each in admin.offsets(group)])


def waits(broker: Broker, group: str) -> list[Reason]:
    """Return why records of the group's one share partition wait."""
    return [reason for reasons in asked(broker, group).partitions.values() for reason in reasons]


def begin(broker: Broker, group: str, **settings: object) -> None:
    configure_group(broker.bootstrap, group, share_auto_offset_reset="earliest", **settings)


def polled(consumer: Any, count: int) -> list[Any]:
    """Return the records of a member that may get so many."""
    found: list[Any] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until:
        found += consumer.poll(0.5)
    assert len(found) >= count
    return found


@ours
def test_back_off_and_delivery_time_say_until_when(broker: Broker, topic: str, group: str) -> None:
    begin(broker, group, share_retry_backoff_ms=60_000, share_deliver_at_header="at")
    due_ms = (int(time.time()) + 600) * 1000
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    producer.produce(topic, b"later", headers=[("at", str(due_ms).encode())])
    producer.produce(topic, b"fails")
    producer.flush(PATIENCE_S)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        (failing,) = polled(consumer, 1)
        released_ms = time.time() * 1000
        consumer.acknowledge(failing, RELEASE)
        commit(consumer)
        backoff, delivery = waits(broker, group)
    assert (backoff["reason"], backoff["records"]) == ("backoff", 1)
    assert backoff["dueMs"] >= released_ms + 59_900
    assert delivery == {"reason": "delivery", "records": 1, "dueMs": due_ms}
    shown = sharecore(broker, "describe", group)[1]
    assert f"{topic}-0: 1 record in back-off, the first until 20" in shown
    assert f"{topic}-0: 1 record before its delivery time, the first until 20" in shown
    (told,) = json.loads(sharecore(broker, "describe", group, "--output", "json")[1])
    # the back-off's time comes from two clocks, so it varies by a millisecond
    assert [each["reason"] for each in told["partitions"][0]["waits"]] == ["backoff", "delivery"]
    assert "1 record in back-off" in sharecore(broker, "peek", group, topic)[1]


@ours
@pytest.mark.parametrize(
    ("ordering", "told", "words"),
    [
        (
            "key",
            {"reason": "order", "records": 4, "most": 5, "first": 0},
            "4 records behind others of their key; a key has 5, from offset 0 on",
        ),
        (
            "partition",
            {"reason": "order", "records": 4, "leased": 1},
            "4 records behind 1 in flight, in the order of the partition",
        ),
    ],
)
def test_records_behind_one_in_flight_say_so(
    broker: Broker, topic: str, group: str, ordering: str, told: dict[str, Any], words: str
) -> None:
    begin(broker, group, share_ordering=ordering)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for number in range(5):
        producer.produce(topic, b"%d" % number, key=b"one")
    producer.flush(PATIENCE_S)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        polled(consumer, 1)
        # a fetch reads further
        until = time.monotonic() + PATIENCE_S
        while (found := waits(broker, group)) != [told] and time.monotonic() < until:
            consumer.poll(0.1)
        assert found == [told]
        assert describe_reason(found[0]) == words


def held_back(broker: Broker, group: str) -> list[tuple[str, str]]:
    """Return by what fetches of a group are held back, as soon as one is."""
    until = time.monotonic() + PATIENCE_S
    while not (found := asked(broker, group).fetches):
        assert time.monotonic() < until
    return [(each["reason"], each["setting"]) for each in found]


@ours
def test_a_fetch_that_the_rate_holds_back_says_so(broker: Broker, topic: str, group: str) -> None:
    begin(broker, group, share_records_per_second=1)
    produce(broker.bootstrap, topic, [b"x"] * 100)
    done = threading.Event()

    def consume() -> None:
        mode = {"share.acknowledgement.mode": "implicit"}
        with share_consumer(broker.bootstrap, group, [topic], **mode) as consumer:
            while not done.is_set():
                consumer.poll(0.5)

    consuming = threading.Thread(target=consume)
    consuming.start()
    try:
        # the first fetch overdraws the rate by a batch
        assert held_back(broker, group) == [("rate", "share.records.per.second")]
    finally:
        done.set()
        consuming.join()


@ours
def test_an_open_breaker_says_so_and_when_it_lets_records_through(
    broker: Broker, topic: str, group: str
) -> None:
    begin(
        broker, group, share_breaker_percent=50, share_breaker_min_records=1, share_breaker_pause_ms=600_000
    )
    produce(broker.bootstrap, topic, [b"x"])
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        (record,) = polled(consumer, 1)
        consumer.acknowledge(record, REJECT)
        commit(consumer)
        produce(broker.bootstrap, topic, [b"y"])
        assert held_back(broker, group) == [("breaker", "share.breaker.percent")]
        assert not consumer.poll(0.5)
    (told,) = asked(broker, group).fetches
    assert told["dueMs"] > time.time() * 1000
    shown = sharecore(broker, "describe", group)[1]
    assert "\nthe breaker of share.breaker.percent is open until 20" in shown
    peeked = sharecore(broker, "peek", group, topic)[1]
    assert f"\ngroup {group}: the breaker of share.breaker.percent is open until 20" in peeked


@ours
@in_loop
async def test_a_fetch_of_a_member_at_its_bound_says_so(broker: Broker, topic: str, group: str) -> None:
    begin(broker, group, share_member_max_record_locks=1)
    produce(broker.bootstrap, topic, [b"x"] * 100)
    busy = asyncio.Event()

    @worker(topic, concurrency=2)
    async def handle(_: Record) -> None:
        await busy.wait()

    working = asyncio.create_task(handle.run(bootstrap_servers=broker.bootstrap, group_id=group))
    try:
        found = await asyncio.to_thread(held_back, broker, group)
        assert found == [("member", "share.member.max.record.locks")]
    finally:
        busy.set()
        handle.stop()
        await working


def test_a_full_window_says_so_on_sharecore_alone(broker: Broker, topic: str, group: str) -> None:
    begin(broker, group, share_partition_max_record_locks=100)
    produce(broker.bootstrap, topic, [b"x"] * 300)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        polled(consumer, 100)
        found = waits(broker, group)
    setting = "share.partition.max.record.locks"
    full = [{"reason": "window", "setting": setting, "limit": 100}]
    assert found == ([] if KIND == "apache" else full)


@ours
def test_a_group_that_is_not_there_yet_may_be_paused_and_that_is_said(
    broker: Broker, topic: str, group: str
) -> None:
    paused = f"share group {group}: paused until it is resumed"
    assert sharecore(broker, "pause", group)[1] == f"{paused}; there is no such group yet\n"
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        consumer.poll(0.5)
        assert sharecore(broker, "pause", group)[1] == f"{paused}\n"
        assert sharecore(broker, "resume", group)[1] == f"share group {group}: gets records\n"
