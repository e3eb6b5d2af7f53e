"""Plaintext connections, served by `Sockets` in one callback of the event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.harness.aio import settled

from sharecore._core import Sockets
from sharecore.network import Connection, Limits, Peer, Server, loop_factory


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Handler:
    """Answers a frame with itself, `large` with five megabytes, and fails at `boom`."""

    def __init__(self) -> None:
        self.connections: dict[bytes, Connection] = {}
        self.tasks: list[int] = []
        self.wanted = 0

    def __call__(self, connection: Connection, frame: bytes) -> list[bytes]:
        self.connections[frame] = connection
        if frame == b"boom":
            raise LookupError("told so")
        if frame == b"large":
            return [framed(bytes(5_000_000))]
        return [framed(frame)]

    def on_open(self, connection: Connection) -> None:
        self.tasks.append(len(asyncio.all_tasks()))


Test = Callable[[Server, Handler, int], Awaitable[None]]


def serve(test: Test, limits: Limits | None = None) -> None:
    async def run() -> None:
        handler = Handler()
        server = Server(handler, limits or Limits(), lambda connection: handler.on_open(connection))
        port = await server.bind("127.0.0.1", 0, "PLAINTEXT")
        server.listen()
        try:
            await asyncio.wait_for(test(server, handler, port), 20)
        finally:
            await server.close()
        assert server.connections == {}

    for factory in (loop_factory(), asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())


async def answer(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def test_connections_that_come_at_once_are_served_without_a_task_each() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        clients = []
        for number in range(200):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(framed(b"%d" % number))
            clients.append(client)
        # the loop has not run since the first one connected
        assert not server.connections
        for number, client in enumerate(clients):
            reader, writer = await asyncio.open_connection(sock=client)
            assert await answer(reader) == b"%d" % number
            writer.close()
        assert len(handler.tasks) == 200
        assert max(handler.tasks) <= 3

    serve(test)


def test_a_handler_that_fails_ends_its_connection_only() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reported.append(report))
        bad = await asyncio.open_connection("127.0.0.1", port)
        good = await asyncio.open_connection("127.0.0.1", port)
        bad[1].write(framed(b"boom"))
        good[1].write(framed(b"hello"))
        assert await answer(good[0]) == b"hello"
        assert await bad[0].read() == b""
        assert [str(report["exception"]) for report in reported] == ["told so"]
        assert handler.connections[b"boom"].closed
        assert not handler.connections[b"hello"].closed

    serve(test)


def test_a_large_request_whose_handler_fails_gives_its_memory_back() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, report: None)

        def fail(connection: Connection, frame: bytes) -> list[bytes]:
            raise LookupError("told so")

        server.on_frame = fail
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(bytes(1_000_000)))
        assert await reader.read() == b""
        assert server.budget.used_bytes == 0

    serve(test)


def test_a_connection_whose_start_fails_is_never_served() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, report: None)

        def fail(connection: Connection) -> None:
            raise LookupError("told so")

        handler.on_open = fail  # type: ignore[method-assign]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"hello"))
        with suppress(ConnectionError):
            assert await reader.read() == b""
        assert not handler.connections
        assert not server.connections
        assert server.admission.total == 0

    serve(test)


def test_a_failure_while_answers_leave_keeps_nobody_elses_back() -> None:
    """A client reads again: its next request is handled while answers are sent, and fails."""

    async def test(server: Server, handler: Handler, port: int) -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reported.append(report))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(framed(b"large") + framed(b"boom"))
        other = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            other[1].write(framed(b"hello"))
            assert await answer(other[0]) == b"hello"
        await reader.read()
        for _ in range(3):
            other[1].write(framed(b"hello"))
            assert await answer(other[0]) == b"hello"
        assert [str(report["exception"]) for report in reported] == ["told so"]

    serve(test)


def test_a_closing_connection_whose_client_does_not_read_is_aborted() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(framed(b"large"))
        await reader.readexactly(4)
        connection = handler.connections[b"large"]
        connection.close()
        assert not connection.closed
        at_ms = server.monotonic_ms()
        for passed_ms in (0, 100, 29_900):
            server.monotonic_ms = partial(int, at_ms + passed_ms)
            server._sweep()
            await asyncio.sleep(0)
            assert not connection.closed
        server.monotonic_ms = partial(int, at_ms + 30_000)
        server._sweep()
        await asyncio.sleep(0)
        assert connection.closed
        assert not server.connections
        writer.close()

    serve(test, Limits(idle_ms_max=200_000))


@pytest.mark.parametrize(("idle_ms_max", "seconds"), [(-1, 30), (100, 0.05), (60_000, 15), (600_000, 30)])
def test_connections_are_swept_no_more_often_than_their_limit_needs(idle_ms_max: int, seconds: float) -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        loop = asyncio.get_running_loop()
        assert server._sweeper is not None
        server._sweeper.cancel()
        server._sweep()
        assert server._sweeper.when() - loop.time() == pytest.approx(seconds, abs=0.02)

    serve(test, Limits(idle_ms_max=idle_ms_max))


def test_the_address_of_a_client_that_has_reset_its_connection_is_known() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        client = socket.create_connection(("127.0.0.1", port))
        peer = client.getsockname()
        client.sendall(framed(b"forbidden"))
        # closed by a reset, before it is accepted
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await settled(lambda: b"forbidden" in handler.connections)
        connection = handler.connections[b"forbidden"]
        assert (connection.peer_host, connection.peer_port) == peer

    serve(test)


def test_a_closed_connection_sends_what_is_left_to_a_slow_client() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(framed(b"large"))
        assert int.from_bytes(await reader.readexactly(4), "big") == 5_000_000
        connection = handler.connections[b"large"]
        connection.close()
        assert connection.is_closing
        assert not connection.closed
        assert len(await reader.read()) == 5_000_000
        await settled(lambda: connection.closed)

    serve(test)


def test_an_aborted_connection_sends_nothing_more() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(framed(b"large"))
        await reader.readexactly(4)
        connection = handler.connections[b"large"]
        transport = connection._transport
        assert transport.fileno() >= 0
        connection.abort()
        assert transport.fileno() == -1
        assert transport.get_write_buffer_size() == 0
        transport.write(b"late")
        try:
            rest = await reader.read()
        except ConnectionError:
            rest = b""
        assert len(rest) < 5_000_000
        assert connection.closed

    serve(test)


def test_a_client_that_only_stops_sending_gets_the_answers_so_far() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"one") + framed(b"two"))
        writer.write_eof()
        assert [await answer(reader), await answer(reader)] == [b"one", b"two"]
        assert await reader.read() == b""

    serve(test)


def test_a_closed_socket_is_refused() -> None:
    async def run() -> None:
        server = Server(Handler(), Limits())
        sockets = Sockets(asyncio.get_running_loop())
        with pytest.raises(OSError, match="closed socket"):
            sockets.open(-1, Connection(server, 1, "PLAINTEXT", Peer("127.0.0.1", 1)))
        assert len(sockets) == 0

    asyncio.run(run())


def io_threads() -> int:
    names = (path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))
    return sum(name == "sharecore-io" for name in names)


def test_answers_of_many_clients_are_sent_by_other_threads_in_their_order() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        try:
            for client in clients:
                client.setblocking(False)
            loop = asyncio.get_running_loop()
            for turn in range(20):
                for number, client in enumerate(clients):
                    client.sendall(b"".join(framed(b"%d.%d.%d" % (number, turn, part)) for part in range(3)))
                for number, client in enumerate(clients):
                    wanted = b"".join(framed(b"%d.%d.%d" % (number, turn, part)) for part in range(3))
                    found = b""
                    while len(found) < len(wanted):
                        found += await loop.sock_recv(client, len(wanted) - len(found))
                    assert found == wanted
            assert 1 <= io_threads() <= 2
        finally:
            for client in clients:
                client.close()

    serve(test, Limits(io_threads=3))
    assert io_threads() == 0


def test_clients_that_ask_and_vanish_leave_nothing_behind() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        for _ in range(5):
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            for number, client in enumerate(clients):
                client.sendall(framed(b"%d" % number) * 4)
                if number % 2:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for client in clients:
                client.close()
            handler.wanted += len(clients)
            await settled(lambda: len(handler.tasks) == handler.wanted and not server.connections)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"hello"))
        assert await answer(reader) == b"hello"
        writer.close()

    serve(test, Limits(io_threads=2))


def test_a_connection_closed_with_its_answer_still_sends_it() -> None:
    async def test(server: Server, handler: Handler, port: int) -> None:
        def reply(connection: Connection, frame: bytes) -> list[bytes]:
            asyncio.get_running_loop().call_soon(connection.close)
            return [framed(frame)]

        server.on_frame = reply
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for number, client in enumerate(clients):
            client.sendall(framed(b"%d" % number))
        for number, client in enumerate(clients):
            reader, writer = await asyncio.open_connection(sock=client)
            assert await reader.read() == framed(b"%d" % number)
            writer.close()

    serve(test, Limits(io_threads=2))
