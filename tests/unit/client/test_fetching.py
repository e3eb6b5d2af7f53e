"""Share sessions, leases and acknowledgements against a broker in memory, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.scripted import LOCK_MS, TOPIC_ID, ScriptedBroker, acknowledged, fetched, member
from tests.unit.client.virtual import LoopClock, in_virtual_time

from sharecore.client import Acknowledged, LeaseLost, ShareConsumer, WakeupError
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey

FETCH, ACKNOWLEDGE = ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
LOCK = LOCK_MS / 1000


def epochs(broker: ScriptedBroker) -> list[int]:
    return [asked.body.share_session_epoch for asked in broker.asked if asked.api in (FETCH, ACKNOWLEDGE)]


@in_virtual_time
async def test_a_session_counts_its_requests() -> None:
    broker = ScriptedBroker()
    for base in (0, 10, 20):
        broker.offer(base, base + 9)
    async with member(prefetch_records=0) as consumer:
        for _ in range(3):
            consumer.accept(await consumer.poll())
        assert list((await consumer.commit_sync()).values()) == [None]
    counted = epochs(broker)
    assert counted[:-1] == list(range(len(counted) - 1))
    assert counted[-1] == -1
    assert broker.acknowledged == [(base, base + 9, b"\1") for base in (0, 10, 20)]
    # partitions are listed when the session opens, and not again
    assert [
        bool(body.topics and not body.topics[0].partitions[0].acknowledgement_batches)
        for body in broker.bodies(FETCH)
    ][:2] == [True, False]


@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_session_is_opened_anew(code: ErrorCode) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        broker.offer(0, 4)
        async with member(prefetch_records=0) as consumer:
            batch = await consumer.poll()
            broker.says[FETCH].append({"error_code": code, "responses": []})
            consumer.accept(batch)
            began = broker.loop.time()
            assert not await consumer.poll(timeout=5)
            assert epochs(broker)[:3] == [0, 1, 0]
            again = broker.times(FETCH)[2] - began
            assert 0.04 <= again <= 0.051
            broker.offer(5, 9)
            consumer.accept(await consumer.poll(timeout=5))
            await consumer.commit_sync()
        # acknowledgements refused with the session were sent again in the new one
        assert [span[:2] for span in broker.acknowledged] == [(0, 4), (5, 9)]

    body()


@in_virtual_time
async def test_a_lease_is_renewed_at_half_of_its_lock() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    async with member(prefetch_records=0) as consumer:
        (record,) = await consumer.poll()
        began = broker.loop.time()
        async with consumer.lease(record) as kept:
            await asyncio.sleep(10 * LOCK)
            assert not kept.lost.is_set()
        await consumer.commit_sync()
    renewed = [
        asked.at - began for asked in broker.asked if asked.api is ACKNOWLEDGE and asked.body.is_renew_ack
    ]
    assert len(renewed) >= 15
    before = 0.0
    for at in renewed:
        # half of a lock's duration, checked eight times per lock
        assert LOCK * 3 / 8 <= at - before <= LOCK * 6 / 8
        before = at
    assert broker.acknowledged[-1] == (0, 0, b"\1")


@in_virtual_time
async def test_renewal_ends_with_its_limit_and_the_lock_with_its_time() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    async with member(prefetch_records=0) as consumer:
        (record,) = await consumer.poll()
        began = broker.loop.time()
        with pytest.raises(LeaseLost):
            async with consumer.lease(record, max_ms=1_000):
                await asyncio.sleep(1_000)
        assert LOCK <= broker.loop.time() - began <= LOCK * 9 / 8 + 0.1
    assert not any(body.is_renew_ack for body in broker.bodies(ACKNOWLEDGE))


@in_virtual_time
async def test_a_renewal_that_is_refused_cancels_the_block() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    refused = {"partition_index": 0, "error_code": ErrorCode.INVALID_RECORD_STATE}
    broker.says[ACKNOWLEDGE].append(acknowledged([refused]))
    async with member(prefetch_records=0) as consumer:
        (record,) = await consumer.poll()
        began = broker.loop.time()
        with pytest.raises(LeaseLost):
            async with consumer.lease(record):
                await asyncio.sleep(1_000)
        assert broker.loop.time() - began < LOCK


@in_virtual_time
async def test_a_refused_renewal_of_a_waiting_record_does_not_end_the_renewal_of_others() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)
    broker.offer(1, 1)
    refused = {"partition_index": 0, "error_code": ErrorCode.INVALID_RECORD_STATE}
    async with member(max_poll_records=1, prefetch_records=10) as consumer:
        consumer.accept(await consumer.poll())
        await consumer.commit_sync()
        # the second record waits for the next poll
        broker.says[ACKNOWLEDGE].append(acknowledged([refused]))
        await asyncio.sleep(LOCK * 7 / 8)
        assert not broker.says[ACKNOWLEDGE], "its renewal was refused"
        broker.offer(2, 2)
        records = [record async for record in _until(consumer, 2)]
        async with consumer.lease(records[-1]) as kept:
            await asyncio.sleep(4 * LOCK)
            assert not kept.lost.is_set()


async def _until(consumer: Any, offset: int) -> Any:
    """Poll until a record comes."""
    while True:
        for record in await consumer.poll(1):
            yield record
            if record.offset == offset:
                return


@in_virtual_time
async def test_what_nobody_asks_for_is_given_back_and_not_fetched_again() -> None:
    broker = ScriptedBroker()
    for base in range(0, 40, 10):
        broker.offer(base, base + 9)
    async with member(
        max_poll_records=10, prefetch_records=30, share_acquire_mode="record_limit"
    ) as consumer:
        for _ in range(10):
            consumer.accept(await consumer.poll(1))
            await asyncio.sleep(0.1)
        taken = len(broker.bodies(FETCH))
        await asyncio.sleep(5 * LOCK)
        released = [span for span in broker.acknowledged if span[2] == b"\2"]
        assert sum(last - first + 1 for first, last, _ in released) == 30
        records = [body.max_records for body in broker.bodies(FETCH)[taken:]]
        assert not any(records)


@in_virtual_time
async def test_another_leader_is_gone_to_and_the_leases_of_the_first_are_lost() -> None:
    first, second = ScriptedBroker(0, nodes=2), ScriptedBroker(1, nodes=2)
    first.offer(0, 4)
    second.offer(0, 4, 2)
    heard: list[Acknowledged] = []
    moved = {
        "partition_index": 0,
        "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "acknowledge_error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "current_leader": {"leader_id": 1, "leader_epoch": 1_000},
    }
    endpoints = [{"node_id": 1, "host": "broker", "port": 9093, "rack": None}]
    async with member(prefetch_records=0) as consumer:
        consumer.set_acknowledgement_commit_callback(heard.append)
        batch = await consumer.poll()
        first.leaders[0] = second.leaders[0] = 1
        first.says[FETCH].append(fetched([moved], node_endpoints=endpoints))
        consumer.accept(batch)
        again = await consumer.poll(timeout=5)
        assert [record.delivery_count for record in again] == [2] * 5
        assert [answer.error.code for answer in heard if answer.error] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        consumer.accept(again)
        await consumer.commit_sync()
    assert second.acknowledged == [(0, 4, b"\1")]


@in_virtual_time
async def test_the_callback_never_runs_within_an_acknowledgement() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 9)
    accepted: set[int] = set()
    heard: list[KafkaError | None] = []

    def answered(answer: Acknowledged) -> None:
        for first, last in answer.offsets:
            assert accepted.issuperset(range(first, last + 1))
        heard.append(answer.error)

    async with member(prefetch_records=0) as consumer:
        consumer.set_acknowledgement_commit_callback(answered)
        batch = await consumer.poll()
        for link in list(broker.links):
            link.cut()
        await asyncio.sleep(0.1)
        for part in (batch[:4], batch[4:7]):
            consumer.accept(part)
            accepted |= {record.offset for record in part}
        (told,) = (await consumer.commit_sync()).values()
        assert isinstance(told, LeaseLost)
        assert heard == [told] * 7
        consumer.accept(batch[7:])
        accepted |= {record.offset for record in batch[7:]}
        await asyncio.sleep(0)
        assert heard == [told] * 10


@in_virtual_time
async def test_refused_acknowledgements_are_halved_until_the_wrong_one_stands_alone() -> None:
    broker = ScriptedBroker()
    for base in range(0, 80, 10):
        broker.offer(base, base + 9)
    heard: list[Acknowledged] = []

    def judge(body: Any) -> dict[str, Any]:
        before = len(broker.acknowledged)
        partitions = broker.settled(body)
        wrong = any(first <= 30 <= last for first, last, _ in broker.acknowledged[before:])
        code = ErrorCode.INVALID_RECORD_STATE if wrong else ErrorCode.NONE
        return acknowledged([{"partition_index": index, "error_code": code} for index in partitions])

    async with member(prefetch_records=0) as consumer:
        consumer.set_acknowledgement_commit_callback(heard.append)
        held = []
        for _ in range(8):
            held.append(await consumer.poll())
            # in progress, so that the next poll may precede the acknowledgement
            consumer.lease(held[-1])
        broker.says[ACKNOWLEDGE].extend([judge] * 20)
        for batch in held:
            consumer.accept(batch)
        (error,) = (await consumer.commit_sync()).values()
        assert error is not None
        assert error.code == ErrorCode.INVALID_RECORD_STATE
        asked = len(broker.bodies(ACKNOWLEDGE))
        broker.says[ACKNOWLEDGE].clear()
    failed = [answer.offsets for answer in heard if answer.error is not None]
    fine = sorted(span for answer in heard if answer.error is None for span in answer.offsets)
    assert failed == [((30, 39),)]
    assert fine == [(base, base + 9) for base in range(0, 80, 10) if base != 30]
    # eight, then both halves, three times
    assert asked <= 1 + 2 * 3


@in_virtual_time
async def test_closing_settles_releases_and_leaves() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 9)
    consumer = member(prefetch_records=0)
    batch = await consumer.poll()
    consumer.accept(batch[:4])
    began = broker.loop.time()
    assert list((await consumer.close()).values()) == [None]
    assert broker.loop.time() - began < 1
    assert broker.acknowledged == [(0, 3, b"\1")]
    assert broker.bodies(ACKNOWLEDGE)[-1].share_session_epoch == -1
    assert broker.bodies(ApiKey.SHARE_GROUP_HEARTBEAT)[-1].member_epoch == -1
    assert not broker.links


@in_virtual_time
async def test_closing_gives_up_on_a_silent_broker() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 9)
    consumer = member(prefetch_records=0)
    consumer.accept(await consumer.poll())
    broker.says[ACKNOWLEDGE].append(None)
    began = broker.loop.time()
    (error,) = (await consumer.close(timeout=3)).values()
    assert error is not None
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert 3 <= broker.loop.time() - began < 3.1
    assert not broker.links


@in_virtual_time
async def test_wakeup_interrupts_the_poll_that_waits_or_the_next() -> None:
    broker = ScriptedBroker()
    async with member() as consumer:
        began = broker.loop.time()
        broker.loop.call_later(2, consumer.wakeup)
        with pytest.raises(WakeupError):
            await consumer.poll()
        assert broker.loop.time() - began == pytest.approx(2, abs=0.01)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            await consumer.poll(timeout=1)
        assert not await consumer.poll(timeout=1)


@in_virtual_time
async def test_metadata_is_refreshed_when_it_is_old() -> None:
    broker = ScriptedBroker()
    async with member(metadata_max_age_ms=60_000) as consumer:
        await consumer.poll(timeout=30)
        before = len(broker.bodies(ApiKey.METADATA))
        await consumer.poll(timeout=600)
        by_id = [body for body in broker.bodies(ApiKey.METADATA)[before:] if body.topics[0].name is None]
        assert len(by_id) == 10
        assert {body.topics[0].topic_id for body in by_id} == {TOPIC_ID}


@in_virtual_time
async def test_a_pause_that_the_broker_asks_for_is_kept() -> None:
    broker = ScriptedBroker()
    broker.says[FETCH].append(fetched([], throttle_time_ms=4_000))
    async with member() as consumer:
        await consumer.poll(timeout=6)
    first, second, *_ = broker.times(FETCH)
    assert second - first == pytest.approx(4, abs=0.01)


@in_virtual_time
async def test_wakeup_from_a_callback_interrupts_the_commit_that_told_it() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 9)
    async with member(prefetch_records=0) as consumer:
        batch = await consumer.poll()
        consumer.set_acknowledgement_commit_callback(lambda _: consumer.wakeup())
        for link in list(broker.links):
            link.cut()
        await asyncio.sleep(0.1)
        await consumer.poll(timeout=2)
        broker.says[FETCH].append(None)
        asked = len(broker.bodies(FETCH))
        while len(broker.bodies(FETCH)) == asked:
            await consumer.poll(timeout=0)
        began = broker.loop.time()
        # the commit first reports that this failed, and then waits for the fetch
        consumer.accept(batch[0])
        with pytest.raises(WakeupError):
            await consumer.commit_sync(timeout=20)
        assert broker.loop.time() - began < 1


class Unprepared(ShareConsumer):
    """A consumer broken by a fetch response."""

    @staticmethod
    def _intake(*_: object) -> int:
        raise ZeroDivisionError


class Damaging(ScriptedBroker):
    """A broker whose first records are invalid: the ranges are not ascending."""

    def _share_fetch(self, body: Any) -> dict[str, Any]:
        answer = super()._share_fetch(body)
        for topic in answer["responses"]:
            for partition in topic["partitions"]:
                partition["acquired_records"] = [*partition.get("acquired_records", ())] * 2
        return answer


@pytest.mark.parametrize("broken", ["answer", "consumer"])
def test_an_answer_that_cannot_be_taken_in_leaves_nobody_waiting(broken: str) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = Damaging() if broken == "answer" else ScriptedBroker()
        broker.offer(0, 4)
        broker.says[FETCH].append(0.5)
        kind = ShareConsumer if broken == "answer" else Unprepared
        settings = {"group_id": "group", "share_acknowledgement_mode": "explicit"}
        consumer = kind(bootstrap_servers="broker:9092", clock=LoopClock(broker.loop), **settings)
        consumer.subscribe(["topic"])
        polling = asyncio.create_task(consumer.poll(timeout=5))
        await broker.until_asked(FETCH)
        began = broker.loop.time()
        if broken == "answer":
            assert await consumer.commit_sync() == {}
            assert broker.loop.time() - began == pytest.approx(0.5, abs=0.1)
            assert not await polling
        else:
            for waiting in (consumer.commit_sync(), polling):
                with pytest.raises(ZeroDivisionError):
                    await waiting
                assert broker.loop.time() - began == pytest.approx(0.5, abs=0.1)
        began = broker.loop.time()
        await consumer.close()
        assert broker.loop.time() - began < 1
        assert broker.bodies(ApiKey.SHARE_GROUP_HEARTBEAT)[-1].member_epoch == -1

    run()


@in_virtual_time
async def test_what_went_with_a_fetch_whose_answer_cannot_be_taken_in_is_settled() -> None:
    broker = Damaging()
    async with member(prefetch_records=0) as consumer:
        # only later acquired records are damaged
        broker.says[FETCH].append(lambda body: ScriptedBroker._share_fetch(broker, body))
        broker.offer(0, 4)
        batch = await consumer.poll()
        broker.offer(5, 9)
        broker.says[FETCH].append(0.5)
        consumer.accept(batch)
        polling = asyncio.create_task(consumer.poll(timeout=5))
        await asyncio.sleep(0.1)
        began = broker.loop.time()
        assert list((await consumer.commit_sync()).values()) == [None]
        assert broker.loop.time() - began == pytest.approx(0.4, abs=0.1)
        await polling
    assert broker.acknowledged == [(0, 4, b"\1")]
