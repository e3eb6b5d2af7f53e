"""The driver's side of a query, without Spark: unfinished records are not forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.batches import batch
from tests.harness.running import RunningBroker

from sharecore.broker.broker import Broker
from sharecore.errors import KafkaError
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import STATE_TOPIC
from sharecore.spark import member as module
from sharecore.spark.member import Member
from sharecore.spark.offset import Offset, SharePartition
from sharecore.spark.options import Options, read_options
from sharecore.spark.ranges import Ranges

COUNT = 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """Provide a broker with some records."""
    running = RunningBroker(tmp_path).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch([b"x"] * COUNT)}]}]
    running.ask(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=5000, topic_data=data)
    yield running
    running.stop()


@pytest.fixture
def options(broker: RunningBroker) -> Options:
    """Return a query on the records."""
    return read_options(
        {
            "kafka.bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "g",
            "subscribe": "t",
            "startingOffsets": "earliest",
        }
    )


def bound_state(broker: RunningBroker, bytes_max: int) -> None:
    """Make the logs of share state refuse larger batches."""

    def bound(found: Broker) -> None:
        topic = found.topics.get(STATE_TOPIC)
        assert topic is not None
        for log in topic.partitions:
            log.configure(
                max_batch_bytes=bytes_max, log_append_time=False, before_max_ms=2**62, after_max_ms=2**62
            )

    broker.look(bound)


async def leased(member: Member) -> Offset:
    """Return the first batch."""
    await member.start()
    start = Offset(0, "g")
    for _ in range(100):
        if (found := await member.lease(start, COUNT)) is not None:
            return found
    raise AssertionError("nothing was leased")


def test_a_query_whose_acknowledgements_fail_for_good_fails(broker: RunningBroker, options: Options) -> None:
    async def run() -> None:
        member = Member(options)
        try:
            first = await leased(member)
            bound_state(broker, 10)
            await member.finish(first, [])
            with pytest.raises(KafkaError, match="failed, and would fail again") as failure:
                await member.lease(first, COUNT)
            assert "does not process them twice" in failure.value.message
            assert sum(ranges.offsets for ranges in member.owed.values()) == COUNT
        finally:
            bound_state(broker, 1 << 20)
            await member.close(5)

    asyncio.run(run())


def test_what_is_settled_is_owed_no_longer(options: Options) -> None:
    async def run() -> None:
        member = Member(options)
        try:
            first = await leased(member)
            assert sum(ranges.offsets for ranges in first.leased.values()) == COUNT
            await member.finish(first, [])
            await member._flush()
            assert not any(len(ranges) for ranges in member.owed.values())
        finally:
            await member.close(5)

    asyncio.run(run())


def test_a_query_that_owes_too_much_fails_and_forgets_nothing(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_OWED_RANGES_MAX", 3)

    async def run() -> None:
        member = Member(options)
        try:
            first = await leased(member)
            (key,) = first.leased
            owed = Ranges((1000 + 2 * at, 1000 + 2 * at, 1) for at in range(5))
            member.owed = {SharePartition(*key): owed}
            member._looked = -1000.0
            with pytest.raises(KafkaError, match=r"raise the share\.record\.lock\.duration\.ms of group g"):
                await member.lease(first, COUNT)
            assert len(member.owed[key]) == 5
        finally:
            await member.close(5)

    asyncio.run(run())
