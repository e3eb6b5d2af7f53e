"""Cut from the network in every phase: what was acknowledged is not lost, and no error or task is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, produce
from tests.harness.proxy import Proxy, When
from tests.interop.client.conftest import ConsumerMaker
from tests.interop.client.receive import nothing_comes, values

from sharecore.client import Acknowledged, Batch, ShareConsumer
from sharecore.client.wire.connection import Connection
from sharecore.protocol import ApiKey

RECORDS = 400
DELIVERIES_MAX = 10
PHASES = [
    (api_key, when)
    for api_key in (
        ApiKey.API_VERSIONS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
    )
    for when in ("request", "answer", "within")
]


@asynccontextmanager
async def cuttable(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    """Provide a proxy that the connections to the broker go through."""
    proxy = Proxy(broker.port)
    await proxy.start()
    opened = Connection.open

    async def redirected(host: str, port: int, *rest: Any) -> Connection:
        return await opened(host, proxy.port if port == broker.port else port, *rest)

    monkeypatch.setattr(Connection, "open", redirected)
    try:
        yield proxy
    finally:
        monkeypatch.undo()
        await proxy.stop()


class Ledger:
    """Checks deliveries against the answers to acknowledgements."""

    def __init__(self) -> None:
        self.accepted: set[int] = set()
        self.settled: set[int] = set()
        self.unanswered: list[int] = []

    async def work(self, consumer: ShareConsumer) -> None:
        """Poll, accept and commit until everything was delivered and nothing comes any more.

        An acknowledgement whose answer was cut off may have been applied, so not all need be settled.
        """
        consumer.set_acknowledgement_commit_callback(self.answered)
        async with asyncio.timeout(60):
            batch: Batch | None = None
            while batch or len(self.accepted) < RECORDS:
                batch = await consumer.poll(40, timeout=1.5)
                offsets = [record.offset for record in batch]
                assert self.settled.isdisjoint(offsets), "an acknowledged record came again"
                consumer.accept(batch)
                self.accepted.update(offsets)
                self.unanswered += offsets
                await consumer.commit_sync()

    def answered(self, answer: Acknowledged) -> None:
        for first, last in answer.offsets:
            for offset in range(first, last + 1):
                self.unanswered.remove(offset)
                if answer.error is None:
                    self.settled.add(offset)


@pytest.mark.parametrize(("api_key", "when"), PHASES, ids=lambda value: getattr(value, "name", value))
@in_loop
async def test_cut_at_a_message(
    broker: Broker,
    topic: str,
    consumer: ConsumerMaker,
    monkeypatch: pytest.MonkeyPatch,
    api_key: ApiKey,
    when: When,
) -> None:
    produce(broker.bootstrap, topic, values(RECORDS))
    early = api_key in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
    ledger = Ledger()
    async with cuttable(broker, monkeypatch) as proxy:
        proxy.cut(api_key, when, after=0 if early else 2)
        async with consumer(share_acquire_mode="record_limit") as member:
            await ledger.work(member)
            while not proxy.cuts:
                await nothing_comes(member, 0.2)
        assert proxy.cuts == 1
    assert len(ledger.settled) >= RECORDS - 40
    assert ledger.unanswered == []
    async with consumer() as successor:
        assert await nothing_comes(successor, 1)


@in_loop
async def test_cut_again_and_again(
    broker: Broker, topic: str, group: str, consumer: ConsumerMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_group(broker.bootstrap, group, share_delivery_count_limit=DELIVERIES_MAX)
    produce(broker.bootstrap, topic, values(RECORDS))
    ledger = Ledger()

    async def cut(proxy: Proxy) -> None:
        # each cut may use up one delivery of every record, and the broker would archive after the last one
        for _ in range(DELIVERIES_MAX - 1):
            await asyncio.sleep(0.15)
            proxy.cut_all()

    async with cuttable(broker, monkeypatch) as proxy:
        cutting = asyncio.create_task(cut(proxy))
        async with consumer(share_acquire_mode="record_limit") as member:
            work = asyncio.create_task(ledger.work(member))
            await asyncio.wait([work], timeout=3)
            cutting.cancel()
            await work
        await asyncio.wait([cutting])
    assert ledger.unanswered == []


@pytest.mark.parametrize("api_key", [ApiKey.SHARE_ACKNOWLEDGE, ApiKey.SHARE_GROUP_HEARTBEAT])
@pytest.mark.parametrize("when", ["request", "answer"])
@in_loop
async def test_cut_while_closing(
    broker: Broker,
    topic: str,
    consumer: ConsumerMaker,
    monkeypatch: pytest.MonkeyPatch,
    api_key: ApiKey,
    when: When,
) -> None:
    produce(broker.bootstrap, topic, values(10))
    heard: list[Acknowledged] = []
    async with cuttable(broker, monkeypatch) as proxy:
        member = consumer()
        member.set_acknowledgement_commit_callback(heard.append)
        batch = await member.poll(10)
        member.accept(batch)
        proxy.cut(api_key, when)
        async with asyncio.timeout(10):
            results = await member.close()
        assert proxy.cuts == 1
        assert len(results) == 1
    offsets = [
        offset for answer in heard for first, last in answer.offsets for offset in range(first, last + 1)
    ]
    assert sorted(offsets) == [record.offset for record in batch]


@in_loop
async def test_closing_without_a_network_ends_in_time(
    broker: Broker, topic: str, consumer: ConsumerMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(broker.bootstrap, topic, values(10))
    async with cuttable(broker, monkeypatch) as proxy:
        member = consumer()
        member.accept(await member.poll(10))
        await proxy.stop()
        async with asyncio.timeout(5):
            (error,) = (await member.close(timeout=2)).values()
        assert error is not None
