"""A producer through lost connections and kill -9 of its broker: each record is there once, in order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.harness.aio import in_loop
from tests.harness.broker import Broker, free_port
from tests.harness.clients import create_topic
from tests.harness.proxy import Proxy, When
from tests.interop.client.test_producer import read

from sharecore.client import Producer
from sharecore.protocol import ApiKey

PARTITIONS = 3
ROUNDS: tuple[When, ...] = ("request", "answer", "within")


class Ledger:
    """What was sent to each partition, in order, and where the cluster says that it is."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.sent: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
        self.confirmed: dict[tuple[int, int], bytes] = {}
        self.ended = False
        self._producer, self._topic = producer, topic

    async def keep_sending(self) -> None:
        """Send until told to end; each record must be confirmed."""
        number = 0
        async with asyncio.TaskGroup() as sending:
            while not self.ended:
                for partition, sent in self.sent.items():
                    sent.append(b"%d" % number)
                    sending.create_task(self._send(partition, sent[-1]))
                number += 1
                await asyncio.sleep(0.002)

    async def _send(self, partition: int, value: bytes) -> None:
        sent = await self._producer.send(self._topic, value, partition=partition)
        assert (sent.partition, sent.offset) not in self.confirmed
        self.confirmed[sent.partition, sent.offset] = value

    async def grow(self, count: int) -> None:
        """Wait until so many more records are confirmed."""
        wanted = len(self.confirmed) + count
        async with asyncio.timeout(40):
            while len(self.confirmed) < wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.mark.timeout(180)
@in_loop
async def test_each_record_is_there_once_and_in_order(tmp_path: Path) -> None:
    port = free_port()
    broker = Broker(
        tmp_path / "broker", "sharecore", {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    )
    await asyncio.to_thread(broker.start)
    proxy = Proxy(broker.port)
    await proxy.start(port)
    try:
        await asyncio.to_thread(create_topic, f"127.0.0.1:{port}", "ledger", PARTITIONS)
        async with Producer(
            bootstrap_servers=f"127.0.0.1:{port}", **{"reconnect.backoff.max.ms": 200}
        ) as producer:
            ledger = Ledger(producer, "ledger")
            sending = asyncio.create_task(ledger.keep_sending())
            await ledger.grow(100)
            for when in ROUNDS:
                cuts = proxy.cuts
                proxy.cut(ApiKey.PRODUCE, when)
                async with asyncio.timeout(40):
                    while proxy.cuts == cuts:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                await ledger.grow(200)
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
                await ledger.grow(200)
            ledger.ended = True
            await sending
        total = sum(map(len, ledger.sent.values()))
        assert len(ledger.confirmed) == total
        messages = await asyncio.to_thread(
            lambda: read(broker.bootstrap, "ledger", total, partitions=PARTITIONS)
        )
    finally:
        await proxy.stop()
        await asyncio.to_thread(broker.kill)
    found = {(message.partition(), message.offset()): message.value() for message in messages}
    assert found == ledger.confirmed
    for partition, sent in ledger.sent.items():
        assert [value for (number, _), value in sorted(found.items()) if number == partition] == sent
