"""Limits on the number and rate of connections."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import pytest
from tests.harness.aio import settled

from sharecore.network import Answer, Connection, Limits, ListenerLimits, Server, loop_factory
from sharecore.network.admission import Admission, _Descriptors
from sharecore.rates import Window

Test = Callable[[Server, dict[str, int]], Awaitable[None]]


def serve(test: Test, limits: Limits, rate_of: Callable[[str], float | None] = lambda host: None) -> None:
    """Two listeners, A and B, that echo their clients' bytes."""

    def echo(connection: Connection, frame: bytes) -> Answer:
        return [len(frame).to_bytes(4, "big"), frame]

    async def run() -> None:
        server = Server(echo, limits, rate_of=rate_of)
        ports = {name: await server.bind("127.0.0.1", 0, name) for name in "AB"}
        server.listen()
        try:
            await asyncio.wait_for(test(server, ports), 20)
        finally:
            await server.close()
        assert server.connections == {}

    for factory in (loop_factory(), asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())


class Client:
    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self._reader, self._writer = streams

    @classmethod
    async def connect(cls, port: int) -> Client:
        client = cls(await asyncio.open_connection("127.0.0.1", port))
        client._writer.write(b"\0\0\0\1x")
        return client

    async def is_served(self) -> bool:
        """Return whether the client is answered: False if the connection is closed instead."""
        try:
            return await self._reader.readexactly(5) == b"\0\0\0\1x"
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return False

    def leave(self) -> None:
        self._writer.close()


async def _still_waits(waiting: asyncio.Future[bool]) -> bool:
    await asyncio.sleep(0.05)
    return not waiting.done()


def test_beyond_the_limit_connections_wait_until_one_goes() -> None:
    async def test(server: Server, ports: dict[str, int]) -> None:
        first, second = await Client.connect(ports["A"]), await Client.connect(ports["B"])
        assert await first.is_served()
        assert await second.is_served()
        clients = [await Client.connect(ports[name]) for name in "AB"]
        third, fourth = (asyncio.ensure_future(client.is_served()) for client in clients)
        assert await _still_waits(third)
        assert await _still_waits(fourth)
        first.leave()
        done, _ = await asyncio.wait((third, fourth), return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        second.leave()
        assert await third
        assert await fourth

    serve(test, Limits(connections_max=2))


def test_a_higher_limit_lets_in_who_waits() -> None:
    async def test(server: Server, ports: dict[str, int]) -> None:
        server.limits = Limits(connections_max=1)
        first, second = [await Client.connect(ports["A"]) for _ in range(2)]
        assert await first.is_served()
        waiting = asyncio.ensure_future(second.is_served())
        assert await _still_waits(waiting)
        server.limits = Limits(connections_max=2)
        assert await waiting

    serve(test, Limits())


def test_a_full_listener_leaves_the_others_alone() -> None:
    async def test(server: Server, ports: dict[str, int]) -> None:
        clients = [await Client.connect(ports[name]) for name in "AABB"]
        assert await clients[0].is_served()
        waiting = asyncio.ensure_future(clients[1].is_served())
        assert await clients[2].is_served()
        assert await clients[3].is_served()
        assert await _still_waits(waiting)
        waiting.cancel()

    serve(test, Limits(listeners={"A": ListenerLimits(connections_max=1)}))


def test_an_address_of_its_own_limit() -> None:
    async def test(server: Server, ports: dict[str, int]) -> None:
        clients = [await Client.connect(ports["A"]) for _ in range(3)]
        assert [await client.is_served() for client in clients] == [True, True, False]
        clients[0].leave()
        await settled(lambda: len(server.connections) <= 1)
        assert await (await Client.connect(ports["A"])).is_served()

    serve(test, Limits(connections_max_per_ip=1, connections_max_of={"127.0.0.1": 2}))


def test_an_address_that_connects_too_fast_is_closed_after_a_while() -> None:
    async def test(server: Server, ports: dict[str, int]) -> None:
        clients = [await Client.connect(ports["A"]) for _ in range(3)]
        assert [await client.is_served() for client in clients] == [False, False, False]

    serve(test, Limits(window=Window(3, 200)), rate_of=lambda host: 1e-6)


def test_the_rate_of_an_address_is_its_own_and_comes_back() -> None:
    now_ms = [0.0]
    limits = Limits(window=Window(3, 1000))
    admission = Admission(lambda: limits, lambda host: 1.0, lambda: now_ms[0])
    assert [admission.host_delay_ms("a") for _ in range(4)] == [0, 0, 1000, 1000]
    assert admission.host_delay_ms("b") == 0
    now_ms[0] = 3000
    assert admission.host_delay_ms("a") == 0


def test_connections_that_come_too_fast_wait_at_the_door() -> None:
    async def test(server: Server, ports: dict[str, int]) -> None:
        clients = [await Client.connect(ports["A"]) for _ in range(6)]
        assert await asyncio.gather(*(client.is_served() for client in clients)) == [True] * 6

    serve(test, Limits(window=Window(3, 100), creation_rate_max=20))


def test_the_rate_of_a_listener_is_its_own() -> None:
    now_ms = [0.0]
    limits = Limits(
        window=Window(3, 1000),
        creation_rate_max=100,
        listeners={"A": ListenerLimits(creation_rate_max=5)},
    )
    admission = Admission(lambda: limits, lambda host: None, lambda: now_ms[0])
    assert [admission.delay_ms("A") for _ in range(11)] == [0] * 10 + [200]
    assert admission.delay_ms("B") == 0
    now_ms[0] = 200
    assert admission.delay_ms("B") == 0


def test_descriptors_are_counted_more_often_the_fewer_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[str] = []
    opened = [100]

    def listed(path: str) -> list[str]:
        counts.append(path)
        return ["0"] * opened[0]

    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    descriptors = _Descriptors()
    assert descriptors.about(10_000) == 100
    for _ in range(1_000):
        descriptors.about(10_000)
    assert len(counts) == 1
    opened[0] = 9_990
    while descriptors.about(10_000) < 9_990:
        assert len(counts) == 1
    counts.clear()
    for _ in range(1_000):
        descriptors.about(10_000)
    assert len(counts) == 1_000 // 16


def test_addresses_without_end_take_no_memory_without_end() -> None:
    limits = Limits(window=Window(3, 1000))
    # all at one moment: no address has been idle
    admission = Admission(lambda: limits, lambda host: 1.0, lambda: 0.0)
    assert [admission.host_delay_ms("regular") for _ in range(3)] == [0, 0, 1000]
    for number in range(25_000):
        admission.host_delay_ms(f"host-{number}")
        if number % 5_000 == 0:
            assert admission.host_delay_ms("regular") == 1000, "who comes again is remembered"
    assert len(admission._host_rates) == 10_000
