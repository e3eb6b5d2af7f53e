"""The listener of a small server: idle clients do not keep others out, and descriptors are left for the
broker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import uvicorn
from tests.harness.aio import settled
from uvicorn.server import ServerState

from sharecore.metrics.listener import _Visitor
from sharecore.network import Answer, Connection, Limits, Server
from sharecore.network.door import Door, Visitor
from sharecore.page.server import _Protocol
from sharecore.security.certificates import Authority


class Echo(asyncio.Protocol):
    """Echoes every line; busy once it has read `busy`."""

    ends_at_once = False

    def __init__(self) -> None:
        self.is_idle = False
        self._hooks: list[Callable[[], None]] = []

    def on_close(self, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)

    def abort(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_idle = True
        if self.ends_at_once:
            self.abort()

    def data_received(self, data: bytes) -> None:
        self.is_idle = data != b"busy\n"
        self._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for hook in self._hooks:
            hook()


@pytest.mark.parametrize("kind", ["page", "metrics"])
def test_a_connection_is_idle_only_once_it_is_made(kind: str) -> None:
    async def run() -> None:
        config = uvicorn.Config(lambda scope: None)
        config.load()
        visitor: Any
        if kind == "page":
            visitor = _Protocol(config=config, server_state=ServerState(), app_state={})
        else:
            visitor = _Visitor(asyncio.StreamReader(), mock.AsyncMock())
        transport = mock.MagicMock(asyncio.Transport)
        assert not visitor.is_idle, "the door would abort a connection that has no transport"
        visitor.connection_made(transport)
        assert visitor.is_idle
        visitor.abort()
        transport.abort.assert_called_once_with()
        visitor.connection_lost(None)

    asyncio.run(run())


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Brief(Echo):
    """Closes as soon as it is created."""

    ends_at_once = True

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._hooks.clear()


def serve(
    test: Callable[[Door, int], Awaitable[None]],
    connections_max: int = 2,
    make: Callable[[], Visitor] = Echo,
    tls: ssl.SSLContext | None = None,
) -> None:
    async def run() -> None:
        door = Door("of the test", lambda: connections_max, make, tls)
        port = await door.bind("127.0.0.1", 0)
        door.listen()
        try:
            await asyncio.wait_for(test(door, port), 20)
        finally:
            door.close()

    asyncio.run(run())


async def said(streams: Streams, line: bytes) -> bytes:
    streams[1].write(line)
    try:
        return await streams[0].readline()
    except ConnectionError:
        return b""


def test_the_oldest_that_does_nothing_makes_room() -> None:
    async def test(door: Door, port: int) -> None:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        assert await said(idle[-1], b"here\n") == b"here\n"
        assert await said(idle[0], b"here\n") == b""
        assert door.open <= 3

    serve(test)


async def until_empty(door: Door) -> None:
    async with asyncio.timeout(20):
        await settled(lambda: not (door.open or door._visitors))


def test_who_goes_at_once_leaves_its_place() -> None:
    async def test(door: Door, port: int) -> None:
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        await until_empty(door)

    serve(test, make=Brief)


def test_who_fails_to_shake_hands_leaves_its_place(tmp_path: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(Authority(tmp_path, days=1).issue("localhost", file="broker", hosts=["localhost"]))

    async def test(door: Door, port: int) -> None:
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
        await until_empty(door)

    serve(test, tls=tls)


def test_who_is_being_answered_stays(caplog: pytest.LogCaptureFixture) -> None:
    async def test(door: Door, port: int) -> None:
        busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for streams in busy:
            assert await said(streams, b"busy\n") == b"busy\n"
        late = await asyncio.open_connection("127.0.0.1", port)
        assert await said(late, b"here\n") == b""
        assert await said(busy[0], b"here\n") == b"here\n"
        assert await said(await asyncio.open_connection("127.0.0.1", port), b"here\n") == b"here\n"

    with caplog.at_level(logging.WARNING):
        serve(test)
    assert "2 connections at of the test are in use" in caplog.text


@pytest.fixture
def few_descriptors() -> object:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # other tests of this process may have left some open
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 390, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_connections_that_ask_for_nothing_make_room_for_others() -> None:
    def echo(connection: Connection, frame: bytes) -> Answer:
        return [len(frame).to_bytes(4, "big"), frame]

    async def run() -> None:
        server = Server(echo, Limits())
        port = await server.bind("127.0.0.1", 0, "PLAINTEXT")
        server.listen()
        asked = await asyncio.open_connection("127.0.0.1", port)
        asked[1].write(b"\0\0\0\1x")
        assert await asked[0].readexactly(5) == b"\0\0\0\1x"
        # each takes two descriptors of this process
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(150)]
        more = []
        for _ in range(40):
            late = await asyncio.open_connection("127.0.0.1", port)
            late[1].write(b"\0\0\0\1y")
            assert await asyncio.wait_for(late[0].readexactly(5), 10) == b"\0\0\0\1y"
            more.append(late)
            if len(more) > 20:
                more.pop(0)[1].close()
                silent.pop()[1].close()
        asked[1].write(b"\0\0\0\1z")
        assert await asked[0].readexactly(5) == b"\0\0\0\1z"
        await server.close()

    asyncio.run(asyncio.wait_for(run(), 60))
