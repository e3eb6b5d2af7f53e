"""Workers in a group with a back-off and an order, on a real broker."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from itertools import pairwise

import pytest
from confluent_kafka import KafkaException, Producer
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, configure_group, produce
from tests.interop.client.test_worker import run

from sharecore.client import Backoff, Record, Retry, worker
from sharecore.client import Producer as SharecoreProducer


@in_loop
async def test_a_workers_back_off_is_the_groups_or_else_its_own(
    broker: Broker, topic: str, group: str
) -> None:
    """Apache Kafka has no such setting: there the worker waits, and no delivery is used up."""
    produce(broker.bootstrap, topic, [b"fails", b"works"])
    done, called = asyncio.Event(), []

    @worker(topic, concurrency=2, retry=Backoff(200, factor=2, last_ms=1000, jitter=0))
    async def handle(record: Record) -> None:
        if record.value == b"fails":
            called.append((time.monotonic(), record.delivery_count))
            if len(called) < 4:
                raise ValueError
            done.set()

    await run(handle, broker, group, done)
    waits = [after - before for (before, _), (after, _) in pairwise(called)]
    assert all(wait >= least for wait, least in zip(waits, (0.2, 0.4, 0.8), strict=True))
    assert [count for _, count in called] == ([1, 1, 1, 1] if broker.kind == "apache" else [1, 2, 3, 4])


@in_loop
async def test_runs_of_keys_stay_in_order_over_failures(broker: Broker, topic: str, group: str) -> None:
    """Each key's records succeed in their order, whichever fail; a fetch brings many of a key."""
    if broker.kind == "apache":
        with pytest.raises(KafkaException, match="Unknown group config name"):
            configure_group(broker.bootstrap, group, share_ordering="key")
        return
    configure_group(
        broker.bootstrap,
        group,
        share_auto_offset_reset="earliest",
        share_ordering="key",
        share_ordering_run_max=8,
        share_delivery_count_limit=10,
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for number in range(60):
        producer.produce(topic, b"%d" % number, key=b"key %d" % (number % 3))
    producer.flush(30)
    done = asyncio.Event()
    busy: set[bytes] = set()
    failed: set[int] = set()
    succeeded: defaultdict[bytes, list[int]] = defaultdict(list)

    @worker(topic, concurrency=16, retry=Retry(attempts=1, first_seconds=0.01))
    async def handle(record: Record) -> None:
        assert record.key not in busy
        busy.add(record.key)
        await asyncio.sleep(0.002)
        busy.remove(record.key)
        if record.offset % 5 == 0 and record.offset not in failed:
            failed.add(record.offset)
            raise ValueError
        succeeded[record.key].append(record.offset)
        if sum(map(len, succeeded.values())) == 60:
            done.set()

    await run(handle, broker, group, done)
    assert len(failed) == 12
    assert {key: sorted(offsets) for key, offsets in succeeded.items()} == succeeded
    assert sum(map(len, succeeded.values())) == 60
    assert handle.counts["given_up"] == 0


@in_loop
@pytest.mark.parametrize("honors", [False, True])
async def test_a_record_that_comes_before_its_time_is_told_of_once(
    broker: Broker, topic: str, group: str, honors: bool, caplog: pytest.LogCaptureFixture
) -> None:
    honors = honors and broker.kind != "apache"
    own = {"share_deliver_at_header": "deliver-at"} if honors else {}
    configure_group(broker.bootstrap, group, share_auto_offset_reset="earliest", **own)
    delay_s = 2 if honors else 600
    async with SharecoreProducer({"bootstrap.servers": broker.bootstrap}) as producer:
        sent_at = time.time()
        for _ in range(2):
            await producer.send(topic, b"later", delay=delay_s)
    done, came = asyncio.Event(), []

    @worker(topic)
    async def handle(_: Record) -> None:
        came.append(time.time() - sent_at)
        if len(came) == 2:
            done.set()

    await run(handle, broker, group, done)
    assert (min(came) >= delay_s) == honors
    told = [each.getMessage() for each in caplog.records if "delivered before its time" in each.getMessage()]
    assert len(told) == (not honors)
    assert honors or "set share.deliver.at.header=deliver-at on the group" in told[0]
