"""Records held by the application: released at the end, renewed, acknowledged once, put back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.unit.client.scripted import LOCK_MS, ScriptedBroker, acknowledged, member
from tests.unit.client.virtual import LoopClock, in_virtual_time

from sharecore.client import AcknowledgeType, Batch, ConsumerClosed, LeaseLost, Record, ShareConsumer
from sharecore.client.leases import LeaseConsumer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey

ACKNOWLEDGE = ApiKey.SHARE_ACKNOWLEDGE
RENEW = AcknowledgeType.RENEW
REFUSED = {"partition_index": 0, "error_code": ErrorCode.INVALID_RECORD_STATE}
Block = Callable[[ShareConsumer], Awaitable[None]]


def implicit(**settings: object) -> ShareConsumer:
    return member(share_acknowledgement_mode="implicit", **settings)


def offsets(records: Batch | list[Record]) -> list[int]:
    return [record.offset for record in records]


# the end of a block


async def _polls(consumer: ShareConsumer) -> None:
    await consumer.poll()


async def _iterates(consumer: ShareConsumer) -> None:
    async for _ in consumer:
        break


async def _raises(consumer: ShareConsumer) -> None:
    await consumer.poll()
    raise ZeroDivisionError


async def _is_cancelled(consumer: ShareConsumer) -> None:
    await consumer.poll()
    async with asyncio.timeout(1):
        await asyncio.sleep(60)


async def _wakes_up(consumer: ShareConsumer) -> None:
    await consumer.poll()
    consumer.wakeup()
    await consumer.poll()


@pytest.mark.parametrize("block", [_polls, _iterates, _raises, _is_cancelled, _wakes_up])
def test_the_end_of_a_block_accepts_nothing(block: Block) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 29)
        with suppress(Exception):
            async with implicit(prefetch_records=0) as consumer:
                await block(consumer)
        assert broker.acknowledged == []
        assert broker.bodies(ACKNOWLEDGE)[-1].share_session_epoch == -1

    run()


@in_virtual_time
async def test_iteration_accepts_what_came_before_and_no_more() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 29)
    async with implicit(prefetch_records=0) as consumer:
        async for record in consumer:
            if record.offset == 3:
                break
    assert broker.acknowledged == [(0, 2, b"\1")]


@in_virtual_time
async def test_a_commit_accepts_what_was_delivered() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 29)
    broker.offer(30, 39)
    async with implicit(prefetch_records=0) as consumer:
        await consumer.poll()
        await consumer.poll()
        await consumer.commit_sync()
    assert broker.acknowledged == [(0, 29, b"\1"), (30, 39, b"\1")]


# how many records a poll takes


class Two:
    """A whole number that is not an `int`, such as one of numpy's."""

    def __index__(self) -> int:
        return 2


@in_virtual_time
async def test_a_poll_takes_any_whole_number_of_records() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 29)
    async with implicit() as consumer:
        most: Any = Two()
        assert offsets(await consumer.poll(most)) == [0, 1]
        for refused in (0, -1, True, 1.0, "1"):
            most = refused
            with pytest.raises(ValueError, match="pass 1 or more"):
                await consumer.poll(most)


# polls with almost no wait


@pytest.mark.parametrize("timeout", [0, 0.0001, 0.001, 0.009])
def test_polls_that_hardly_wait_get_records(timeout: float) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 19)
        async with implicit() as consumer:
            polls = 0
            while not (batch := await consumer.poll(timeout=timeout)):
                polls += 1
                assert polls < 100
                await asyncio.sleep(0.005)
            assert offsets(batch) == list(range(20))

    run()


@in_virtual_time
async def test_leases_are_acquired_without_waiting() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 19)
    settings = {"bootstrap_servers": "broker:9092", "group_id": "g", "share_acknowledgement_mode": "explicit"}
    async with LeaseConsumer(clock=LoopClock(broker.loop), **settings) as consumer:
        consumer.subscribe(["topic"])
        for _ in range(100):
            leased = await consumer.acquire(20, 0)
            if leased:
                break
            await asyncio.sleep(0.005)
        assert [(each.first, each.last) for each in leased] == [(0, 19)]
        consumer.settle(leased[0].part(0, 19), AcknowledgeType.ACCEPT)


# renewed by acknowledging


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_renewed_is_delivered_again(commit: bool) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 3)
        async with member(prefetch_records=0) as consumer:
            batch = await consumer.poll()
            consumer.acknowledge(batch, RENEW)
            if commit:
                assert list((await consumer.commit_sync()).values()) == [None]
            broker.offer(4, 5)
            again = await consumer.poll(timeout=5)
            assert list(again) == list(batch)
            with pytest.raises(RuntimeError, match="before the next poll"):
                await consumer.poll(timeout=5)
            consumer.accept(again)
            fresh = await consumer.poll(timeout=5)
            assert offsets(fresh) == [4, 5]
            consumer.accept(fresh)
        assert broker.acknowledged == [(0, 3, b"\4"), (0, 3, b"\1"), (4, 5, b"\1")]

    run()


@in_virtual_time
async def test_of_a_batch_only_what_was_renewed_is_delivered_again() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 6)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        async with consumer.lease(batch[3]):
            for offset in (0, 2, 3, 4, 6):
                consumer.acknowledge(batch[offset], RENEW)
            consumer.accept(batch[1])
            consumer.reject(batch[5])
            # changed before it was sent
            consumer.release(batch[6])
            assert offsets(await consumer.poll(2, timeout=5)) == [0, 2]
            consumer.release([batch[0], batch[2]])
            again = await consumer.poll(2, timeout=5)
            assert offsets(again) == [4]
            consumer.accept(again)
            assert not await consumer.poll(timeout=1)
        await consumer.commit_sync()
    ends = {first: types for first, last, types in broker.acknowledged if first == last}
    assert ends[3] == b"\1"


@in_virtual_time
async def test_an_acknowledged_batch_does_not_cover_what_is_worked_on_between_its_records() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 2)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        async with consumer.lease(batch[1], on_error=AcknowledgeType.REJECT):
            consumer.put_back([batch[0], batch[2]])
            consumer.accept(await consumer.poll(timeout=5))
            await consumer.commit_sync()
            assert broker.acknowledged == [(0, 0, b"\1"), (2, 2, b"\1")]
    assert broker.acknowledged[2:] == [(1, 1, b"\1")]


@in_virtual_time
async def test_what_could_not_be_renewed_is_not_delivered_again() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 3)
    broker.says[ACKNOWLEDGE].append(acknowledged([REFUSED]))
    async with member(prefetch_records=0) as consumer:
        consumer.acknowledge(await consumer.poll(), RENEW)
        broker.offer(4, 5)
        fresh = await consumer.poll(timeout=5)
        assert offsets(fresh) == [4, 5]
        consumer.accept(fresh)
        (error,) = (await consumer.commit_sync()).values()
        assert error is not None
        assert error.code is ErrorCode.INVALID_RECORD_STATE


@in_virtual_time
async def test_a_poll_does_not_wait_for_renewal_past_its_end() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 3)
    broker.says[ACKNOWLEDGE].append(2.0)
    async with member(prefetch_records=0) as consumer:
        consumer.acknowledge(await consumer.poll(), RENEW)
        began = broker.loop.time()
        assert not await consumer.poll(timeout=0.5)
        assert broker.loop.time() - began == pytest.approx(0.5, abs=0.05)
        async for record in consumer:
            consumer.accept(record)
            if record.offset == 3:
                break
        assert broker.loop.time() - began == pytest.approx(2, abs=0.2)


# lost locks


@pytest.mark.parametrize("cause", ["session", "time"])
def test_a_block_over_a_lost_lock_does_not_begin(cause: str) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 2)
        async with member(prefetch_records=0) as consumer:
            batch = await consumer.poll()
            if cause == "session":
                for link in list(broker.links):
                    link.cut()
            await asyncio.sleep(0.1 if cause == "session" else 2 * LOCK_MS / 1000)
            began = []
            for record in batch:
                with pytest.raises(LeaseLost):
                    async with consumer.lease(record):
                        began.append(record)
                await asyncio.sleep(0.01)
            task = asyncio.current_task()
            assert task is not None
            assert (began, task.cancelling()) == ([], 0)

    run()


@in_virtual_time
async def test_a_block_that_loses_its_lock_in_a_call_of_its_own_is_not_cancelled_behind_its_end() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 2)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        ended = False

        async def lose() -> None:
            nonlocal ended
            async with consumer.lease(batch[0]):
                for link in consumer._runtime.links.values():
                    link.abandon()
                ended = True

        with pytest.raises(LeaseLost):
            await lose()
        await asyncio.sleep(0.01)
        assert ended


@in_virtual_time
async def test_a_lock_that_is_lost_releases_the_rest_of_its_block() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    broker.offer(1, 1)
    broker.says[ACKNOWLEDGE].append(acknowledged([REFUSED]))
    async with member(prefetch_records=0) as consumer:
        first = await consumer.poll()
        consumer.lease(first)
        second = await consumer.poll()
        consumer.accept(first)
        consumer.lease(second)

        async def lose() -> None:
            async with consumer.lease([*first, *second], on_error=AcknowledgeType.REJECT):
                await consumer.commit_sync()
                await asyncio.sleep(60)

        with pytest.raises(LeaseLost):
            await lose()
    assert broker.acknowledged == [(1, 1, b"\2")]


# acknowledged once


@in_virtual_time
async def test_what_is_not_held_is_refused_at_the_call() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 4)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        first = batch[0]
        consumer.release(first)
        # until it is sent
        consumer.accept(first)
        await consumer.commit_sync()
        calls = (
            lambda: consumer.accept(first),
            lambda: consumer.accept([batch[1], first, batch[2]]),
            lambda: consumer.accept(iter([batch[1], first])),
            lambda: consumer.acknowledge(first, RENEW),
            lambda: consumer.lease(first),
        )
        for call in calls:
            with pytest.raises(KafkaError) as refused:
                call()
            assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
        with pytest.raises(KafkaError):
            await consumer.renew(first)
        # the rest
        consumer.reject(batch)
        assert list((await consumer.close()).values()) == [None]
    assert broker.acknowledged == [(0, 0, b"\1"), (1, 4, b"\3")]
    assert broker.bodies(ApiKey.SHARE_GROUP_HEARTBEAT)[-1].member_epoch == -1


@in_virtual_time
async def test_a_batch_of_which_nothing_is_left() -> None:
    broker = ScriptedBroker()
    for base in (0, 10, 20):
        broker.offer(base, base + 4)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        for record in batch:
            consumer.accept(record)
        # the end of a loop that may have stopped early
        consumer.release(batch)
        await consumer.commit_sync()
        with pytest.raises(KafkaError, match="acknowledged before"):
            consumer.release(batch)
        leased = await consumer.poll()
        async with consumer.lease(leased):
            consumer.accept(leased)
            consumer.accept(await consumer.poll())
            await consumer.commit_sync()
            consumer.release(leased)
        with pytest.raises(KafkaError, match="acknowledged before"):
            consumer.release(leased)
        consumer.accept(await consumer.poll(timeout=0.1))
    assert [types for _, _, types in broker.acknowledged] == [b"\1"] * 3


@in_virtual_time
async def test_a_record_of_another_consumer() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    async with member(prefetch_records=0) as consumer, member(prefetch_records=0) as other:
        (record,) = await consumer.poll()
        for kind in AcknowledgeType:
            with pytest.raises(KafkaError, match="not delivered by this consumer") as refused:
                other.acknowledge(record, kind)
            assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
        consumer.accept(record)
        with pytest.raises(KafkaError, match="not delivered by this consumer"):
            other.release(record)
    assert broker.acknowledged == [(0, 0, b"\1")]


@in_virtual_time
async def test_no_kind_of_acknowledgement() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 1)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        consumer.accept(batch[0])
        for kind in (0, 5, 0x30):
            with pytest.raises(ValueError, match="AcknowledgeType"):
                consumer.acknowledge(batch[1], kind)  # type: ignore[arg-type]
        consumer.accept(batch[1])
    with pytest.raises(ConsumerClosed):
        consumer.accept(batch[1])
    assert broker.acknowledged == [(0, 1, b"\1")]


@in_virtual_time
async def test_what_deserializers_made_is_not_deserialized_again() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 3)
    async with member(prefetch_records=0, value_deserializer=lambda value: json.loads(b"[1]")) as consumer:
        batch = await consumer.poll()
        consumer.put_back(batch[1:])
        consumer.acknowledge(batch[0], RENEW)
        for _ in range(2):
            again = await consumer.poll(timeout=1)
            assert {str(record.value) for record in again} == {"[1]"}
            consumer.accept(again)
    assert sum(last - first + 1 for first, last, types in broker.acknowledged if types == b"\1") == 4


# arguments


@pytest.mark.parametrize("timeout", [-1, -0.001, float("nan"), "1"])
def test_a_time_out_that_cannot_be(timeout: float) -> None:
    @in_virtual_time
    async def run() -> None:
        ScriptedBroker()
        async with member() as consumer:
            for call in (consumer.commit_sync, consumer.close, consumer.client_instance_id):
                with pytest.raises(ValueError, match="timeout="):
                    await call(timeout)
            with pytest.raises(ValueError, match="timeout="):
                await consumer.poll(timeout=timeout)
            assert not await consumer.poll(timeout=0.1)

    run()


@pytest.mark.parametrize("topics", [None, "topic", b"topic", 5, [""], ["  "], [None], [b"topic"]])
def test_a_subscription_that_cannot_be(topics: list[str]) -> None:
    @in_virtual_time
    async def run() -> None:
        ScriptedBroker()
        async with member() as consumer:
            with pytest.raises(ValueError, match="topic"):
                consumer.subscribe(topics)
            assert consumer.subscription == {"topic"}

    run()
