"""Locks: renewed while a handler works, lost when nobody renews."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import produce
from tests.interop.client.conftest import ConsumerMaker
from tests.interop.client.receive import commit, delivered, nothing_comes, receive, settle, values

from sharecore.client import AcknowledgeType, LeaseLost
from sharecore.client.blocking import ShareConsumer as BlockingShareConsumer
from sharecore.errors import ErrorCode

pytestmark = pytest.mark.usefixtures("short_lock")


@in_loop
async def test_a_slow_handler_keeps_its_record(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(1))
    async with consumer() as slow, consumer() as other:
        (record,) = await receive(slow, 1)
        async with slow.lease(record) as kept:
            assert await nothing_comes(other, 6)
            assert not kept.lost.is_set()
        await commit(slow)
        assert await nothing_comes(other)


@in_loop
async def test_without_renewal_another_gets_it(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(1))
    async with consumer() as slow, consumer() as other:
        (record,) = await receive(slow, 1)
        again = await receive(other, 1)
        assert delivered(again) == [(0, 2)]
        slow.accept(record)
        (error,) = (await slow.commit_sync()).values()
        assert error is not None
        assert error.code == ErrorCode.INVALID_RECORD_STATE
        other.accept(again)
        await commit(other)


@in_loop
async def test_renewing_by_hand(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(3))
    async with consumer() as slow, consumer() as other:
        records = await receive(slow, 3)
        for _ in range(4):
            await asyncio.sleep(0.9)
            await slow.renew(records)
        slow.accept(records)
        await commit(slow)
        assert await nothing_comes(other)
        produce(broker.bootstrap, topic, values(1))
        late = await receive(slow, 1)
        await asyncio.sleep(4)
        with pytest.raises(LeaseLost):
            await slow.renew(late)


@in_loop
async def test_renewal_has_an_end(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(1))
    began = time.monotonic()

    async def work_forever() -> None:
        async with slow.lease(await receive(slow, 1), max_ms=2_000):
            await asyncio.sleep(60)

    async with consumer() as slow, consumer() as other:
        with pytest.raises(LeaseLost):
            await work_forever()
        assert 2 < time.monotonic() - began < 30
        assert delivered(await settle(other, 1)) == [(0, 2)]


@pytest.mark.parametrize("kind", [AcknowledgeType.RELEASE, AcknowledgeType.REJECT])
@in_loop
async def test_a_handler_that_raises(
    broker: Broker, topic: str, consumer: ConsumerMaker, kind: AcknowledgeType
) -> None:
    produce(broker.bootstrap, topic, values(2))

    async def fail() -> None:
        async with member.lease(records[0], on_error=kind):
            raise ZeroDivisionError

    async with consumer() as member:
        records = await receive(member, 2)
        with pytest.raises(ZeroDivisionError):
            await fail()
        member.accept(records[1])
        await commit(member)
        if kind is AcknowledgeType.RELEASE:
            assert delivered(await settle(member, 1)) == [(0, 2)]
        assert await nothing_comes(member)


@in_loop
async def test_a_block_acknowledges_as_it_likes(broker: Broker, topic: str, consumer: ConsumerMaker) -> None:
    produce(broker.bootstrap, topic, values(4))
    async with consumer() as member:
        batch = await member.poll(4)
        async with member.lease(batch):
            await asyncio.sleep(4.5)
            member.reject(batch[0])
            member.release(batch[1])
        await commit(member)
        assert delivered(await settle(member, 1)) == [(1, 2)]
        assert await nothing_comes(member)


@in_loop
async def test_what_waits_in_the_buffer_is_not_lost(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(100), **{"linger.ms": 500})
    async with consumer() as slow, consumer() as other:
        records = list(await slow.poll(1))
        watching = asyncio.create_task(nothing_comes(other, 4))
        for _ in range(8):
            slow.accept(records[-1])
            await asyncio.sleep(0.5)
            records += await slow.poll(1)
        assert await watching
        slow.accept(records[-1])
        rest = await receive(slow, 91)
        assert delivered([*records, *rest]) == [(offset, 1) for offset in range(100)]
        slow.accept(rest)
        await commit(slow)
        assert await nothing_comes(other, 1)


@in_loop
async def test_what_nobody_asks_for_is_given_back(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(10), **{"linger.ms": 500})
    async with consumer() as idle, consumer() as other:
        records = await idle.poll(1)
        idle.accept(records)
        await commit(idle)
        assert delivered(await settle(other, 9)) == [(offset, 2) for offset in range(1, 10)]


def test_the_blocking_face(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, values(20))
    with BlockingShareConsumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    ) as member:
        member.subscribe([topic])
        batch = member.poll(10, timeout=20)
        assert len(batch) == 10
        for record in batch[:5]:
            member.accept(record)
        member.release(batch[9])
        with member.lease(batch[5:9]) as lost:
            time.sleep(5)
            assert not lost.is_set()
        assert list(member.commit_sync().values()) == [None]
        rest = []
        for record in member:
            rest.append((record.offset, record.delivery_count))
            member.accept(record)
            if len(rest) == 11:
                break
        assert sorted(rest) == [(9, 2), *((offset, 1) for offset in range(10, 20))]
        assert list(member.commit_sync().values()) == [None]
    with BlockingShareConsumer(bootstrap_servers=broker.bootstrap, group_id=group) as successor:
        successor.subscribe([topic])
        assert not successor.poll(timeout=2)


@in_loop
async def test_fetching_ahead_for_nobody_uses_no_deliveries_up(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(40))
    async with consumer(max_poll_records=10, prefetch_records=30, share_acquire_mode="record_limit") as busy:
        found: dict[int, int] = {}
        # in quick succession, so that records are prefetched for the consumer
        for _ in range(10):
            batch = await busy.poll(1, timeout=30)
            found |= delivered(batch)
            busy.accept(batch)
        # long enough for five deliveries of the prefetched records
        await asyncio.sleep(16)
        async with asyncio.timeout(60):
            while len(found) < 40:
                batch = await busy.poll(timeout=5)
                found |= delivered(batch)
                busy.accept(batch)
        await commit(busy)
    # prefetched records were released once, and not fetched again before the next poll
    assert {found[offset] for offset in range(10)} == {1}
    assert set(found.values()) == {1, 2}
