"""Failed records and the group's back-off, in virtual time: no delivery is used up in a tight loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.client.scripted import ScriptedBroker
from tests.unit.client.virtual import in_virtual_time
from tests.unit.client.workers.harness import Events, running, until

from sharecore.client import Backoff, Record, Retry, worker
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey

pytestmark = pytest.mark.usefixtures("virtual_clock", "events")


def altered(broker: ScriptedBroker) -> dict[str, str]:
    """Return the settings altered by the worker, except the start of a new group."""
    configs = [
        config
        for body in broker.bodies(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        for resource in body.resources
        for config in resource.configs
    ]
    return {each.name: each.value for each in configs if each.name != "share.auto.offset.reset"}


@in_virtual_time
async def test_a_back_off_is_set_for_the_group_and_failures_are_released_at_once(events: Events) -> None:
    broker = ScriptedBroker()
    broker.group_configs |= {"share.retry.backoff.on": ("timeout", 8)}
    broker.offer(0, 0)
    called: list[float] = []

    @worker("topic", retry=Backoff(500, factor=3, last_ms=9_000, jitter=0))
    async def handle(_: Record) -> None:
        called.append(broker.loop.time())
        raise ValueError

    async with running(handle):
        await until(lambda: (0, 0, b"\2") in broker.acknowledged)
        assert broker.loop.time() - called[0] < 0.3
        await asyncio.sleep(60)
    assert len(called) == 1
    assert altered(broker) == {
        "share.retry.backoff.ms": "500",
        "share.retry.backoff.max.ms": "9000",
        "share.retry.backoff.multiplier": "3.0",
        "share.retry.backoff.jitter": "0.0",
        "share.retry.backoff.on": "release,timeout",
    }
    assert len(events.of("released")) == 1


@in_virtual_time
async def test_a_back_off_that_the_group_has_is_left_alone() -> None:
    broker = ScriptedBroker()
    values = {"ms": "1000", "max.ms": "60000", "multiplier": "2", "jitter": "0.20"}
    broker.group_configs |= {f"share.retry.backoff.{name}": (v, 8) for name, v in values.items()}

    @worker("topic", retry=Backoff())
    async def handle(_: Record) -> None: ...

    async with running(handle):
        await asyncio.sleep(1)
    assert altered(broker) == {}


@in_virtual_time
async def test_where_the_cluster_has_no_back_off_the_worker_waits_itself(events: Events) -> None:
    broker = ScriptedBroker()
    broker.no_backoff = True
    broker.offer(0, 0)
    called: list[float] = []

    @worker("topic", retry=Backoff(2_000, factor=2, last_ms=8_000, jitter=0))
    async def handle(_: Record) -> None:
        called.append(broker.loop.time())
        if len(called) < 5:
            raise ValueError

    async with running(handle):
        await until(lambda: (0, 0, b"\1") in broker.acknowledged)
    assert [round(after - before) for before, after in pairwise(called)] == [2, 4, 8, 8]
    assert "share.retry.backoff.ms" in events.of("no group back-off")[0]["advice"]


@pytest.mark.parametrize("group_waits", [True, False])
def test_without_retries_in_place_a_failed_record_is_not_released_in_a_tight_loop(group_waits: bool) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        if group_waits:
            broker.group_configs |= {"share.retry.backoff.ms": ("60000", 8)}
        broker.offer(0, 0, 3)
        called: list[float] = []

        @worker("topic", retry=Retry(attempts=1, first_seconds=2, max_seconds=10, jitter=0))
        async def handle(_: Record) -> None:
            called.append(broker.loop.time())
            raise ValueError

        async with running(handle):
            await until(lambda: (0, 0, b"\2") in broker.acknowledged)
        # longer with each delivery
        waited = broker.loop.time() - called[0]
        assert waited < 2 if group_waits else 8 <= waited < 9
        assert len(called) == 1

    body()


@in_virtual_time
async def test_a_worker_that_stops_gives_back_at_once_what_waits_to_be_released() -> None:
    broker = ScriptedBroker()
    broker.offer(0, 0)

    @worker("topic", retry=Retry(attempts=1, first_seconds=20))
    async def handle(_: Record) -> None:
        raise ValueError

    async with running(handle):
        await asyncio.sleep(5)
        assert broker.acknowledged == []
        began = broker.loop.time()
    assert broker.acknowledged == [(0, 0, b"\2")]
    assert broker.loop.time() - began < 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry": Backoff(), "on_error": "reject"}, "on_error='reject' ends a record"),
        ({"retry": Backoff(first_ms=0)}, "first_ms of at least 1"),
        ({"retry": Backoff(), "backoff": Backoff()}, "pass one of them"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        worker("topic", **options)


@pytest.mark.parametrize("values", [{"jitter": 1.5}, {"jitter": -0.1}, {"factor": float("inf")}])
def test_waits_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Backoff(**values)
