"""Heartbeats: when they are sent, and the effect of responses."""

from __future__ import annotations

import asyncio
import gc
import warnings
from functools import partial
from itertools import pairwise

import pytest
from tests.unit.client.scripted import ScriptedBroker, member
from tests.unit.client.virtual import in_virtual_time

from sharecore.client import TopicPartition
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey

BEAT = ApiKey.SHARE_GROUP_HEARTBEAT


def waits(broker: ScriptedBroker) -> list[float]:
    """Return the seconds between heartbeats."""
    return [round(after - before, 3) for before, after in pairwise(broker.times(BEAT))]


def refused(code: ErrorCode) -> dict[str, object]:
    return {"error_code": code, "member_id": None, "assignment": None}


@in_virtual_time
async def test_each_answers_interval_is_honoured() -> None:
    broker = ScriptedBroker()
    for interval_ms in (5_000, 300, 40, 12_000):
        broker.says[BEAT].append(partial(broker.beat, interval_ms=interval_ms))
    async with member() as consumer:
        await consumer.poll(timeout=30)
        assert waits(broker) == [5.0, 0.3, 0.04, 12.0, 5.0, 5.0]
        assert consumer.assignment == {TopicPartition("topic", 0)}
    assert [body.member_epoch for body in broker.bodies(BEAT)] == [0, 1, 1, 1, 1, 1, 1, -1]


@in_virtual_time
async def test_a_consumer_that_is_closed_at_once_leaves_nothing_unfinished() -> None:
    gc.collect()  # what other tests left
    ScriptedBroker()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        await member().close()
        gc.collect()
    assert [str(each.message) for each in told] == []


@in_virtual_time
async def test_names_are_sent_when_they_change() -> None:
    broker = ScriptedBroker()
    async with member() as consumer:
        await consumer.poll(timeout=6)
        consumer.subscribe(["topic", "other"])
        await consumer.poll(timeout=6)
    names = [body.subscribed_topic_names for body in broker.bodies(BEAT)]
    assert [sorted(each) if each is not None else None for each in names] == [
        ["topic"],
        None,
        ["other", "topic"],
        None,
        None,
    ]


@in_virtual_time
async def test_tries_again_ever_more_slowly() -> None:
    broker = ScriptedBroker()
    broker.says[BEAT].extend([refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 6)
    async with member(retry_backoff_ms=100, retry_backoff_max_ms=1_000) as consumer:
        await consumer.poll(timeout=9)
    slept = waits(broker)[:6]
    for wait, most in zip(slept, (0.1, 0.2, 0.4, 0.8, 1.0, 1.0), strict=True):
        assert most * 0.8 - 0.001 <= wait <= most + 0.001
    # the same connection, and no new coordinator lookup
    assert len(broker.bodies(ApiKey.FIND_COORDINATOR)) == 1


@in_virtual_time
async def test_a_coordinator_that_moved_is_looked_for_again() -> None:
    first, second = ScriptedBroker(0, nodes=2), ScriptedBroker(1, nodes=2)
    where = {"key": "group", "node_id": 1, "host": "broker", "port": 9093}
    first.says[ApiKey.FIND_COORDINATOR].extend([0.0, {"coordinators": [where]}])
    first.says[BEAT].append(refused(ErrorCode.NOT_COORDINATOR))
    second.says[ApiKey.FIND_COORDINATOR].append({"coordinators": [where]})
    async with member() as consumer:
        await consumer.poll(timeout=3)
    assert len(first.bodies(BEAT)) == 1
    assert [body.member_epoch for body in second.bodies(BEAT)] == [0, -1]


@pytest.mark.parametrize(
    "code",
    [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND],
)
def test_a_fenced_member_joins_anew(code: ErrorCode) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        broker.says[BEAT].extend([0.0, refused(code)])
        async with member() as consumer:
            await consumer.poll(timeout=5.05)
            assert consumer.assignment == frozenset()
            await consumer.poll(timeout=1)
            assert consumer.assignment == {TopicPartition("topic", 0)}
        assert [beat.member_epoch for beat in broker.bodies(BEAT)] == [0, 1, 0, -1]
        assert len({beat.member_id for beat in broker.bodies(BEAT)}) == 1

    body()


@in_virtual_time
async def test_a_name_that_belongs_to_a_group_of_another_type_is_final() -> None:
    broker = ScriptedBroker()
    broker.says[BEAT].append(refused(ErrorCode.GROUP_ID_NOT_FOUND))
    async with member() as consumer:
        with pytest.raises(KafkaError) as raised:
            await consumer.poll(timeout=60)
        assert raised.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert len(broker.bodies(BEAT)) == 1


@in_virtual_time
async def test_an_error_that_is_final_is_told_each_time() -> None:
    broker = ScriptedBroker()
    broker.says[BEAT].append(refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    async with member() as consumer:
        for _ in range(2):
            with pytest.raises(KafkaError) as raised:
                await consumer.poll(timeout=60)
            assert raised.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await asyncio.sleep(60)
    assert len(broker.bodies(BEAT)) == 1


@in_virtual_time
async def test_an_application_that_does_not_poll_leaves_and_comes_back() -> None:
    broker = ScriptedBroker()
    async with member(max_poll_interval_ms=20_000) as consumer:
        await consumer.poll(timeout=1)
        await asyncio.sleep(120)
        assert [body.member_epoch for body in broker.bodies(BEAT)] == [0, 1, 1, 1, 1, -1]
        await consumer.poll(timeout=1)
        assert broker.bodies(BEAT)[-1].member_epoch == 0


@in_virtual_time
async def test_no_answer_ends_the_connection_after_the_request_timeout() -> None:
    broker = ScriptedBroker()
    broker.says[BEAT].append(None)
    async with member(request_timeout_ms=7_000) as consumer:
        await consumer.poll(timeout=8)
    (wait, *_) = waits(broker)
    assert 7.08 <= wait <= 7.101


@in_virtual_time
async def test_impossible_names_are_told_once_a_look_up() -> None:
    broker = ScriptedBroker()
    bad = {"error_code": ErrorCode.INVALID_TOPIC_EXCEPTION, "name": "no topic"}
    where = {"node_id": 0, "host": "broker", "port": 9092}
    broker.says[ApiKey.METADATA].append({"brokers": [where], "topics": [bad]})
    async with member(metadata_max_age_ms=60_000) as consumer:
        with pytest.raises(KafkaError, match="'no topic'"):
            await consumer.poll(timeout=1)
        assert not await consumer.poll(timeout=50)
        broker.says[ApiKey.METADATA].append({"brokers": [where], "topics": [bad]})
        with pytest.raises(KafkaError, match="'no topic'"):
            await consumer.poll(timeout=60)


@pytest.mark.parametrize("turns", range(8))
def test_a_member_that_is_closed_while_it_joins_leaves(turns: int) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = ScriptedBroker()
        consumer = member()
        await broker.until_asked(BEAT)
        for _ in range(turns):
            await asyncio.sleep(0)
        await consumer.close()
        assert [body.member_epoch for body in broker.bodies(BEAT)] == [0, -1]

    run()


@pytest.mark.parametrize("ends", ["close", "unsubscribe"])
def test_a_join_that_was_not_answered_is_taken_back(ends: str) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = ScriptedBroker()

        def cut(_: object) -> None:
            for link in list(broker.links):
                link.cut()

        # the coordinator has the member, whatever happened to its response
        broker.says[BEAT].append(cut)
        async with member(retry_backoff_ms=5_000, retry_backoff_max_ms=5_000) as consumer:
            await broker.until_asked(BEAT)
            await asyncio.sleep(0.1)
            if ends == "unsubscribe":
                consumer.unsubscribe()
                await asyncio.sleep(10)
                assert [body.member_epoch for body in broker.bodies(BEAT)] == [0, -1]
        assert [body.member_epoch for body in broker.bodies(BEAT)] == [0, -1]

    run()


@in_virtual_time
async def test_a_member_that_could_not_leave_tries_again() -> None:
    broker = ScriptedBroker()
    broker.says[BEAT].extend([0.0, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)])
    broker.says[BEAT].append(refused(ErrorCode.NOT_COORDINATOR))
    consumer = member()
    await consumer.poll(timeout=1)
    await consumer.close()
    assert [body.member_epoch for body in broker.bodies(BEAT)] == [0, -1, -1, -1]
    assert len(broker.bodies(ApiKey.FIND_COORDINATOR)) == 2


@in_virtual_time
async def test_who_never_asked_to_join_does_not_leave() -> None:
    broker = ScriptedBroker()
    broker.says[ApiKey.FIND_COORDINATOR].append(None)
    consumer = member()
    await broker.until_asked(ApiKey.FIND_COORDINATOR)
    await consumer.close()
    assert broker.bodies(BEAT) == []
