"""The network layer over real sockets, with a minimal frame handler instead of a broker."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from operator import contains

import pytest
from tests.harness.aio import settled

from sharecore.network import Answer, Connection, Disconnect, Limits, Pending, Server, loop_factory

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Echo:
    """Echoes each frame; `later` frames on command, `bad` ones never."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.waiting: dict[bytes, asyncio.Future[bytes]] = {}
        self.connections: list[Connection] = []

    def __call__(self, connection: Connection, frame: bytes) -> Answer:
        self.seen.append(frame)
        if connection not in self.connections:
            self.connections.append(connection)
        if frame.startswith(b"bad"):
            raise Disconnect("told so")
        if frame.startswith(b"silent"):
            return None
        if frame.startswith(b"later"):
            future = self.waiting[frame] = asyncio.get_running_loop().create_future()
            return Pending(future, lambda done: [framed(done.result())])
        return [framed(frame)]


def serve(test: Callable[[Server, Echo, int], Awaitable[None]], limits: Limits | None = None) -> None:
    async def run() -> None:
        echo = Echo()
        server = Server(echo, limits or Limits())
        port = await server.bind("127.0.0.1", 0, "PLAINTEXT")
        server.listen()
        try:
            await asyncio.wait_for(test(server, echo, port), 20)
        finally:
            await server.close()
        assert server.connections == {}
        assert server.budget.used_bytes == 0

    for factory in (loop_factory(), asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())


async def connect(port: int) -> Streams:
    return await asyncio.open_connection("127.0.0.1", port)


async def answer(streams: Streams) -> bytes:
    size = int.from_bytes(await streams[0].readexactly(4), "big")
    return await streams[0].readexactly(size)


def test_answers_keep_the_order_of_the_requests() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(b"".join(map(framed, [b"later 1", b"now", b"silent", b"later 2", b"last"])))
        await settled(lambda: len(echo.seen) == 5)
        echo.waiting[b"later 2"].set_result(b"two")
        echo.waiting[b"later 1"].set_result(b"one")
        assert [await answer(streams) for _ in range(4)] == [b"one", b"now", b"two", b"last"]

    serve(test)


def test_a_pipeline_has_an_end() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(b"".join(framed(b"later %d" % n) for n in range(10)))
        await settled(lambda: len(echo.seen) == 3)
        await asyncio.sleep(0.05)
        assert len(echo.seen) == 3
        for n in range(10):
            await settled(partial(contains, echo.waiting, b"later %d" % n))
            assert echo.connections[0].in_flight <= 3
            echo.waiting[b"later %d" % n].set_result(b"%d" % n)
            assert await answer(streams) == b"%d" % n

    serve(test, Limits(pipeline_max=3))


@pytest.mark.parametrize("size", [2**31 - 1, -5])
def test_an_impossible_frame_closes_its_connection_only(size: int, caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        other, bad = await connect(port), await connect(port)
        bad[1].write(struct.pack(">i", size) + b"x" * 100)
        assert await bad[0].read() == b""
        other[1].write(framed(b"hello"))
        assert await answer(other) == b"hello"

    serve(test)
    assert [str(size) in record.getMessage() for record in caplog.records] == [True, True]


def test_a_refused_request_closes_the_connection_after_the_answers_before_it() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(framed(b"later") + framed(b"bad") + framed(b"never read"))
        await settled(lambda: len(echo.seen) == 2)
        echo.waiting[b"later"].set_result(b"first")
        assert await answer(streams) == b"first"
        assert await streams[0].read() == b""
        assert echo.seen == [b"later", b"bad"]

    serve(test)


def test_a_client_that_goes_cancels_what_it_waited_for_and_calls_the_hooks() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(framed(b"later"))
        await settled(lambda: bool(echo.waiting))
        called: list[int] = []
        echo.connections[0].on_close(lambda: called.append(1))
        streams[1].close()
        await settled(lambda: bool(called))
        await settled(echo.waiting[b"later"].cancelled)

    serve(test)


def test_memory_for_requests_is_bounded() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        first, second, small = await connect(port), await connect(port), await connect(port)
        first[1].write(framed(b"later" + bytes(600_000)))
        await settled(lambda: len(echo.waiting) == 1)
        second[1].write(framed(b"second" + bytes(3_000_000)))
        await asyncio.sleep(0.1)
        assert len(echo.seen) == 1
        assert server.budget.used_bytes < 1_500_000
        small[1].write(framed(b"small"))
        assert await answer(small) == b"small"
        next(iter(echo.waiting.values())).set_result(b"done")
        assert await answer(first) == b"done"
        assert len(await answer(second)) == 3_000_006

    serve(test, Limits(request_bytes_max=500_000))


def test_a_request_larger_than_the_budget_gets_through() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        both = [await connect(port) for _ in range(2)]
        for streams in both:
            streams[1].write(framed(bytes(2_000_000)))
        for streams in both:
            assert len(await answer(streams)) == 2_000_000

    serve(test, Limits(request_bytes_max=500_000))


def test_parts_of_requests_cannot_fill_the_memory_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        stalled = [await connect(port) for _ in range(3)]
        for size, streams in enumerate(stalled, 3):
            streams[1].write(struct.pack(">i", 10_000_000) + bytes(size * 100_000))
        await settled(lambda: server.budget.is_wanted)
        honest = await connect(port)
        honest[1].write(framed(bytes(2_000_000)))
        assert len(await answer(honest)) == 2_000_000
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await answer(stalled[0])

    serve(test, Limits(request_bytes_max=500_000, stalled_ms_max=50))
    assert "has stalled while others wait for memory" in caplog.text


def test_what_comes_in_drops_does_not_keep_others_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        slow, honest = await connect(port), await connect(port)
        slow[1].write(struct.pack(">i", 2_000_000))
        dripping = asyncio.create_task(drip(slow[1]))
        await settled(lambda: server.budget.used_bytes > 0)
        honest[1].write(framed(bytes(2_000_000)))
        assert len(await answer(honest)) == 2_000_000
        dripping.cancel()

    async def drip(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.005)

    serve(test, Limits(request_bytes_max=500_000, stalled_ms_max=50))
    assert "has stalled while others wait for memory" in caplog.text


@pytest.mark.heavy
def test_a_slow_client_is_let_be_while_nobody_waits_for_its_memory() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        slow = await connect(port)
        body = bytes(100_000)
        for at in range(0, len(body), 20_000):
            slow[1].write((struct.pack(">i", len(body)) if not at else b"") + body[at : at + 20_000])
            await asyncio.sleep(0.1)
        assert await answer(slow) == body

    serve(test, Limits(request_bytes_max=500_000, stalled_ms_max=10))


@pytest.mark.heavy
def test_a_request_that_waits_lets_go_of_its_bytes_and_makes_room() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        waiting = [await connect(port) for _ in range(3)]
        for number, streams in enumerate(waiting):
            streams[1].write(framed(b"later %d" % number + bytes(100_000)))
            await settled(partial(contains, echo.waiting, b"later %d" % number + bytes(100_000)))
        other = await connect(port)
        other[1].write(framed(bytes(100_000)))
        assert len(await answer(other)) == 100_000

    serve(test, Limits(request_bytes_max=1_000_000, pipelined=0))


def test_only_one_request_of_what_may_be_answered_at_length_is_under_way() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(b"".join(map(framed, [b"later 1", b"later 2", b"\0\0now"])))
        await settled(lambda: len(echo.seen) == 1)
        await asyncio.sleep(0.05)
        assert echo.seen == [b"later 1"]
        echo.waiting[b"later 1"].set_result(b"one")
        await settled(lambda: len(echo.seen) == 3)
        echo.waiting[b"later 2"].set_result(b"two")
        assert [await answer(streams) for _ in range(3)] == [b"one", b"two", b"\0\0now"]

    serve(test, Limits(pipelined=1))


def test_answers_that_nobody_reads_share_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    large = bytes(3_000_000)

    async def test(server: Server, echo: Echo, port: int) -> None:
        deaf = await asyncio.open_connection("127.0.0.1", port, limit=1)
        deaf[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for number in range(20):
            deaf[1].write(framed(b"later %d" % number))
        await settled(lambda: bool(echo.waiting))
        echo.waiting[b"later 0"].set_result(large)
        await settled(lambda: server.answers.used_bytes >= 1_000_000)
        other = await connect(port)
        other[1].write(framed(b"later, too"))
        await settled(lambda: b"later, too" in echo.waiting)
        assert len(echo.seen) == 2, "nothing more is asked for a client that does not read"
        assert server.answers.used_bytes <= len(large) + (1 << 20)
        echo.waiting[b"later, too"].set_result(b"here")
        assert await answer(other) == b"here"

    serve(test, Limits(answer_bytes_max=1_000_000, unread_ms_max=100, send_buffer_bytes=1 << 16, pipelined=0))
    assert "bytes of answers while others wait for memory" in caplog.text


@pytest.mark.heavy
def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await asyncio.open_connection("127.0.0.1", port, limit=1)
        body = bytes(100_000)
        for _ in range(400):
            streams[1].write(framed(body))
        await asyncio.sleep(0.3)
        assert len(echo.seen) < 300
        other = await connect(port)
        other[1].write(framed(b"hello"))
        assert await answer(other) == b"hello"
        for _ in range(400):
            assert len(await answer(streams)) == len(body)

    serve(test, Limits(write_buffer_bytes_max=65536))


def test_others_are_served_between_the_parts_of_a_large_answer() -> None:
    large = bytes(range(256)) * 20_000

    async def test(server: Server, echo: Echo, port: int) -> None:
        streams, other = await connect(port), await connect(port)
        sent: list[int] = []
        other[1].write(framed(b"hello"))
        await answer(other)
        streams[1].write(framed(b"later") + framed(b"behind"))
        await settled(lambda: len(echo.seen) == 3)
        (connection,) = {each for each in echo.connections if each.in_flight}
        transport, turns = connection._transport, [0]

        class Counting:
            """The transport, recording its bytes per turn of the loop."""

            def __getattr__(self, name: str) -> object:
                return getattr(transport, name)

            def write(self, data: bytes) -> None:
                self.writelines([data])

            def writelines(self, parts: list[bytes]) -> None:
                sent.append(sum(map(len, parts)))
                assert turns.pop() > 0, "once a turn"
                turns.append(0)
                transport.writelines(parts)

        def turn() -> None:
            turns[0] += 1
            asyncio.get_running_loop().call_soon(turn)

        connection._transport = Counting()
        turn()
        await asyncio.sleep(0)
        echo.waiting[b"later"].set_result(large)
        assert await answer(streams) == large
        assert await answer(streams) == b"behind"
        assert max(sent) <= 1 << 18
        assert sum(sent) == len(large) + 4 + len(framed(b"behind"))

    serve(test, Limits(send_buffer_bytes=1 << 18))


def test_an_answer_is_sent_to_its_end_when_its_connection_is_closed() -> None:
    large = bytes(5_000_000)

    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(framed(b"later"))
        await settled(lambda: len(echo.seen) == 1)
        echo.waiting[b"later"].set_result(large)
        await asyncio.sleep(0)
        echo.connections[0].close()
        assert await answer(streams) == large
        assert await streams[0].read() == b""

    serve(test, Limits(send_buffer_bytes=1 << 16))


def test_a_client_that_goes_while_it_is_sent_to_leaves_nothing_behind() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        streams = await connect(port)
        streams[1].write(framed(b"later"))
        await settled(lambda: len(echo.seen) == 1)
        echo.waiting[b"later"].set_result(bytes(50_000_000))
        await asyncio.sleep(0.05)
        streams[1].transport.abort()
        await settled(lambda: not server.connections)

    serve(test, Limits(send_buffer_bytes=1 << 16))


def test_connections_are_bounded() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        kept = [await connect(port) for _ in range(2)]
        for streams in kept:
            streams[1].write(framed(b"hello"))
            assert await answer(streams) == b"hello"
        refused = await connect(port)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await answer(refused)
        kept[0][1].close()
        await settled(lambda: len(server.connections) == 1)
        streams = await connect(port)
        streams[1].write(framed(b"again"))
        assert await answer(streams) == b"again"

    serve(test, Limits(connections_max_per_ip=2))


def test_idle_connections_go_and_waiting_ones_stay() -> None:
    async def test(server: Server, echo: Echo, port: int) -> None:
        idle, waiting = await connect(port), await connect(port)
        waiting[1].write(framed(b"later"))
        assert await idle[0].read() == b""
        await settled(lambda: bool(echo.waiting))
        echo.waiting[b"later"].set_result(b"still here")
        assert await answer(waiting) == b"still here"

    serve(test, Limits(idle_ms_max=200))
