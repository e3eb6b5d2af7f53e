"""TLS over real sockets: hostile and incomplete handshakes are bounded, and responses arrive."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.harness.aio import settled

from sharecore.config import BrokerConfig
from sharecore.network import Answer, Connection, HeldSockets, Limits, Server, loop_factory
from sharecore.security.certificates import Authority
from sharecore.security.tls import server_context

Test = Callable[[Server, int, ssl.SSLContext], Awaitable[None]]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certificates")
    Authority(path, days=1).issue("localhost", file="broker", hosts=["localhost", "127.0.0.1"])
    return path


def serve(directory: Path, test: Test, limits: Limits | None = None) -> None:
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(directory / "broker.pem")}
    context = server_context(BrokerConfig.from_properties(settings))
    trusting = ssl.create_default_context(cafile=str(directory / "ca.pem"))

    def echo(connection: Connection, frame: bytes) -> Answer:
        return [struct.pack(">i", len(frame)), frame]

    async def run() -> None:
        server = Server(echo, limits or Limits())
        port = await server.bind("127.0.0.1", 0, "SSL", tls=lambda: context)
        server.listen()
        try:
            await asyncio.wait_for(test(server, port, trusting), 20)
        finally:
            await server.close()
        assert server.connections == {}
        assert len(server.handshakes) == 0
        assert server.budget.used_bytes == 0

    for factory in (loop_factory(), asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())


async def echoed(port: int, context: ssl.SSLContext, body: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(struct.pack(">i", len(body)) + body)
    size = int.from_bytes(await reader.readexactly(4), "big")
    answer = await reader.readexactly(size)
    writer.close()
    return answer


@pytest.mark.heavy
def test_frames_of_any_size_come_through(directory: Path) -> None:
    async def test(server: Server, port: int, context: ssl.SSLContext) -> None:
        for size in (0, 1, 100_000, 3_000_000):
            body = bytes(index % 251 for index in range(size))
            assert await echoed(port, context, body) == body

    serve(directory, test)


def test_garbage_and_who_goes_away_leave_nothing(directory: Path) -> None:
    async def test(server: Server, port: int, context: ssl.SSLContext) -> None:
        for sent in (b"GET / HTTP/1.1\r\n\r\n" * 40, b"\x16\x03\x01\x7f\xff" + bytes(40), b"", b"\x16"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            if len(sent) < 5:
                writer.close()
            else:
                assert len(await reader.read()) < 100
            writer.close()
        await settled(lambda: not len(server.handshakes))
        assert await echoed(port, context, b"still there") == b"still there"

    serve(directory, test)


def test_a_handshake_has_a_deadline(directory: Path) -> None:
    async def test(server: Server, port: int, context: ssl.SSLContext) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01\x01\x00")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()

    serve(directory, test, Limits(handshake_ms_max=150))


def test_of_too_many_handshakes_the_oldest_is_given_up(directory: Path) -> None:
    async def test(server: Server, port: int, context: ssl.SSLContext) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        await settled(lambda: len(server.handshakes) == 8)
        for _ in range(20):
            assert await echoed(port, context, b"meant well") == b"meant well"
            assert len(server.handshakes) <= 8
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()

    serve(directory, test, Limits(handshakes_max=8))


def test_who_is_in_counts_until_it_goes(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server, port: int, context: ssl.SSLContext) -> None:
        def inside() -> int:
            return server.admission.total

        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        await settled(lambda: bool(server.connections))
        assert inside() == 1
        _, stranger = await asyncio.open_connection("127.0.0.1", port)
        await settled(lambda: inside() == 2)
        stranger.close()
        await settled(lambda: inside() == 1)
        writer.close()
        await settled(lambda: inside() == 0)

    serve(directory, test, Limits(connections_max=2))
    assert "never retrieved" not in caplog.text


def test_held_clients_notice_only_their_release(directory: Path) -> None:
    async def test(server: Server, port: int, context: ssl.SSLContext) -> None:
        clear = await server.bind("127.0.0.1", 0, "PLAINTEXT")
        server.listen()
        ends = []
        for at, tls in ((port, context), (clear, None)):
            reader, writer = await asyncio.open_connection("127.0.0.1", at, ssl=tls)
            writer.write(struct.pack(">i", 1) + b"x")
            assert await reader.readexactly(5) == b"\0\0\0\1x"
            ends.append((asyncio.ensure_future(reader.read()), writer))
        held = HeldSockets()
        await server.close(held=held)
        assert server.connections == {}
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(ended.done() for ended, _ in ends)
        held.release()
        for ended, writer in ends:
            with contextlib.suppress(ConnectionError):
                assert await ended == b""
            writer.close()

    serve(directory, test)
