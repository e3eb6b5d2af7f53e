"""Clients with TLS on plaintext listeners and the reverse: logged once a minute."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import struct
from collections.abc import Awaitable, Callable

import pytest
from tests.harness.aio import settled

from sharecore.config import BrokerConfig
from sharecore.logs import LineLimit
from sharecore.network import Answer, Connection, Limits, Server, loop_factory
from sharecore.network.server import Server as ServerClass
from sharecore.security.certificates import Authority
from sharecore.security.tls import server_context

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
SENT_IN_THE_CLEAR = (API_VERSIONS, b"GET / HTTP/1.1\r\n\r\n")


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    path = tmp_path_factory.mktemp("certificates")
    Authority(path, days=1).issue("localhost", file="broker", hosts=["localhost", "127.0.0.1"])
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path / "broker.pem")}
    return server_context(BrokerConfig.from_properties(settings))


def serve(test: Callable[[ServerClass, int], Awaitable[None]], tls: ssl.SSLContext | None) -> None:
    def echo(_: Connection, frame: bytes) -> Answer:
        return [frame]

    async def run() -> None:
        server = Server(echo, Limits())
        port = await server.bind("127.0.0.1", 0, "ANY", tls=None if tls is None else lambda: tls)
        server.listen()
        try:
            await asyncio.wait_for(test(server, port), 20)
        finally:
            await server.close()

    for factory in (loop_factory(), asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return found


async def say_in_the_clear(port: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def say_in_tls(port: int) -> None:
    trusting = ssl.create_default_context()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="localhost")


@pytest.mark.parametrize("sent", SENT_IN_THE_CLEAR)
def test_what_comes_in_the_clear_to_a_listener_with_tls(
    context: ssl.SSLContext, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async def test(server: ServerClass, port: int) -> None:
        for _ in range(3):
            await say_in_the_clear(port, sent)
        await settled(lambda: not len(server.handshakes))
        (line,) = lines(caplog)
        assert "the TLS handshake of 127.0.0.1:" in line
        assert "it speaks no TLS, which this listener needs: set its security.protocol to SSL" in line

    serve(test, context)


def test_tls_to_a_listener_without(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: ServerClass, port: int) -> None:
        for _ in range(3):
            await say_in_tls(port)
        (line,) = lines(caplog)
        assert "closing 127.0.0.1:" in line
        assert "it speaks TLS on a plaintext listener: set its security.protocol to PLAINTEXT" in line

    serve(test, None)


def test_http_to_a_listener_of_kafkas_protocol(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: ServerClass, port: int) -> None:
        for _ in range(3):
            await say_in_the_clear(port, SENT_IN_THE_CLEAR[1])
        (line,) = lines(caplog)
        assert "it speaks HTTP on a Kafka listener" in line

    serve(test, None)


def test_each_address_has_a_line_and_another_one_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0

    async def test(server: ServerClass, port: int) -> None:
        nonlocal now_s
        server.strangers = LineLimit(1, 1 / 60, now_s=lambda: now_s)
        for moment in (0.0, 59.0, 61.0):
            now_s = moment
            await say_in_tls(port)
        assert len(lines(caplog)) == 2
        assert server.strangers.allows("another address")

    serve(test, None)


def test_other_broken_frames_are_told_each_time(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: ServerClass, port: int) -> None:
        for _ in range(3):
            await say_in_the_clear(port, struct.pack(">i", 2**31 - 1))
        assert len(lines(caplog)) == 3

    serve(test, None)
