"""A seed repeats the faults, the proxy does what it says, and only what was started here gets signals."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path

import pytest

from sharecore.verify.history import Writer
from sharecore.verify.nemesis import LocalBroker, Nemesis
from sharecore.verify.nemesis.proxy import Proxy
from sharecore.verify.nemesis.run import KINDS, schedule

LISTENER = (
    f"{sys.executable} -c 'import socket, time; "
    's = socket.create_server(("127.0.0.1", {port})); time.sleep(600)\''
)


def test_a_seed_repeats_the_schedule() -> None:
    first = list(islice(schedule(7), 200))
    assert first == list(islice(schedule(7), 200))
    assert first != list(islice(schedule(8), 200))
    assert {step.kind for step in first} == set(KINDS)


async def with_echo(act: Callable[[Proxy], Awaitable[None]]) -> None:
    """A proxy before a server that sends back what it gets, and says END at the end."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.write(b"END")
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1])
    await proxy.start()
    try:
        async with asyncio.timeout(30):
            await act(proxy)
    finally:
        await proxy.stop()
        server.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nobody tells of the end of a process
            await asyncio.sleep(0.005)


def test_a_proxy_passes_holds_and_delays() -> None:
    async def act(proxy: Proxy) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        proxy.hold()
        writer.write(b"two")
        waiting = asyncio.ensure_future(reader.readexactly(3))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        proxy.release()
        assert await waiting == b"two"
        proxy.delay_s = 0.05
        writer.write(b"three")
        assert await reader.readexactly(5) == b"three"
        writer.close()

    asyncio.run(with_echo(act))


def test_a_proxy_cuts() -> None:
    async def act(proxy: Proxy) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()

    asyncio.run(with_echo(act))


def test_a_proxy_half_closes_and_answers_still_pass() -> None:
    async def act(proxy: Proxy) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        proxy.half_close()
        assert await reader.readexactly(3) == b"END"
        writer.close()

    asyncio.run(with_echo(act))


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    async def start(command: str) -> str:
        broker = LocalBroker(command, tmp_path)
        try:
            await broker.start()
        except RuntimeError as error:
            return str(error)
        finally:
            await broker.close()
        return ""

    assert "cannot be started" in asyncio.run(start("/nowhere/program {port}"))
    ended = asyncio.run(start("sh -c 'echo out of luck >&2; exit 3'"))
    assert "the broker ended with 3" in ended
    assert "out of luck" in ended


def test_only_a_process_that_runs_and_was_started_here_gets_signals(tmp_path: Path) -> None:
    async def act() -> None:
        broker = LocalBroker(LISTENER, tmp_path)
        with pytest.raises(RuntimeError, match="does not run"):
            broker.pause()
        await broker.start()
        try:
            broker.pause()
            broker.resume()
            await broker.restart()
            broker.kill()
            with pytest.raises(RuntimeError, match="does not run"):
                broker.resume()
            broker.kill()
        finally:
            await broker.close()

    asyncio.run(act())


def test_a_fault_that_is_interrupted_is_mended_and_written_down(tmp_path: Path) -> None:
    async def act() -> list[str]:
        broker = LocalBroker(LISTENER, tmp_path)
        await broker.start()
        clock = asyncio.get_running_loop().time
        with Writer(tmp_path / "history", {}, lambda: clock() * 1000) as writer:
            # the first fault of this seed is a broker that is killed
            seed = next(seed for seed in range(100) if next(schedule(seed)).kind == "kill")
            nemesis = Nemesis(broker, seed, hurry=100.0)
            running = asyncio.ensure_future(nemesis(writer))
            await until(lambda: not broker.is_running)
            running.cancel()
            await asyncio.wait([running])
            assert broker.is_running
        await broker.close()
        return nemesis.done

    assert asyncio.run(act()) == ["kill"]
    lines = [json.loads(line) for line in (tmp_path / "history").read_text().splitlines()]
    assert [line.get("kind") for line in lines] == [None, "kill"]
