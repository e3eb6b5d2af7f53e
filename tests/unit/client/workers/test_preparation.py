"""A worker's preparations, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.scripted import ScriptedBroker
from tests.unit.client.virtual import in_virtual_time
from tests.unit.client.workers.harness import Events, running

from sharecore.client import Record, worker
from sharecore.protocol import ApiKey

pytestmark = pytest.mark.usefixtures("virtual_clock", "events")


@in_virtual_time
async def test_a_new_group_starts_at_the_first_record(events: Events) -> None:
    broker = ScriptedBroker()

    @worker("topic")
    async def handle(_: Record) -> None: ...

    async with running(handle):
        await asyncio.sleep(1)
    assert broker.group_configs["share.auto.offset.reset"] == ("earliest", 8)
    assert events.of("group set")[0]["setting"] == "share.auto.offset.reset=earliest"


@pytest.mark.parametrize("from_beginning", [None, False])
def test_what_is_set_already_is_left_alone(from_beginning: bool | None) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        if from_beginning is None:
            broker.group_configs["share.auto.offset.reset"] = ("latest", 8)

        @worker("topic", from_beginning=from_beginning)
        async def handle(_: Record) -> None: ...

        async with running(handle):
            await asyncio.sleep(1)
        assert broker.bodies(ApiKey.INCREMENTAL_ALTER_CONFIGS) == []

    body()


@in_virtual_time
async def test_a_broker_that_does_not_answer_is_named_in_growing_pauses(events: Events) -> None:
    broker = ScriptedBroker()
    broker.stop()

    @worker("topic")
    async def handle(_: Record) -> None: ...

    async with running(handle):
        await asyncio.sleep(30)
        lines = events.of("no answer")
        pauses = [line["next_try_in_seconds"] for line in lines]
        assert 5 <= len(lines) <= 6
        assert pauses == sorted(pauses)
        assert lines[0]["brokers"] == "broker:9092"
        assert "nobody listens at broker:9092" in lines[0]["error"]
        broker.start()
        await asyncio.sleep(31)
        assert events.of("started")
