"""A seed repeats the faults, the proxy works, and only processes started here get signals."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path

import pytest
from tests.harness.broker import free_port

from sharecore.verify.history import Writer
from sharecore.verify.nemesis import LocalBroker, LocalCluster, Nemesis
from sharecore.verify.nemesis.clock import Clock
from sharecore.verify.nemesis.proxy import Proxy
from sharecore.verify.nemesis.run import KINDS, LINK_KINDS, schedule

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
    """A proxy before a server that echoes its input, and sends END at the end."""

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
        with pytest.raises(RuntimeError, match="is not running"):
            broker.pause()
        await broker.start()
        try:
            broker.pause()
            broker.resume()
            await broker.terminate()
            assert not broker.is_running
            await broker.start()
            broker.kill()
            with pytest.raises(RuntimeError, match="is not running"):
                broker.resume()
            broker.kill()
        finally:
            await broker.close()

    asyncio.run(act())


WRITER = """
import errno, socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
known = None
while True:
    try:
        with open(sys.argv[2] + "/file", "w") as file:
            file.write("x")
        found = "written"
    except OSError as error:
        found = errno.errorcode[error.errno]
    if found != known:
        # a pipe has no limit
        socket.create_connection(("127.0.0.1", int(sys.argv[3]))).sendall(found.encode())
        known = found
    time.sleep(0.005)
"""


def test_a_disk_is_full_for_one_process_and_free_again(tmp_path: Path) -> None:
    (tmp_path / "writer.py").write_text(WRITER)

    async def act() -> list[str]:
        said: asyncio.Queue[str] = asyncio.Queue()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await said.put((await reader.read(100)).decode())
            writer.close()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        broker = LocalBroker(f"{sys.executable} {tmp_path}/writer.py {{port}} {{data}} {port}", tmp_path)
        await broker.start()
        try:
            async with asyncio.timeout(30):
                first = await said.get()
                broker.fill_disk()
                second = await said.get()
                (tmp_path / "of-this-process").write_text("x")
                broker.free_disk()
                return [first, second, await said.get()]
        finally:
            await broker.close()
            server.close()

    assert asyncio.run(act()) == ["written", "EFBIG", "written"]


@pytest.mark.skipif(not Clock.can_step, reason="takes Debian's package libfaketime")
def test_a_wall_clock_is_stepped_and_the_monotonic_clock_is_not(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    program = "import time; print(time.time(), time.monotonic())"

    def ask() -> tuple[float, float]:
        command = [sys.executable, "-c", program]
        wall, monotonic = subprocess.run(
            command, env=os.environ | environment, capture_output=True, check=True
        ).stdout.split()
        return float(wall) - time.time(), float(monotonic) - time.monotonic()

    environment = clock.environment
    wall, monotonic = ask()
    assert (abs(wall), abs(monotonic)) < (600, 600)
    clock.step(3600)
    wall, monotonic = ask()
    assert 3000 < wall < 4200
    assert abs(monotonic) < 600
    clock.step(-3600)
    assert -4200 < ask()[0] < -3000


HOME = """
import socket, sys, time
from pathlib import Path
port, data, home = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
while True:
    try:
        (home / "leads").mkdir()
        break
    except FileExistsError:
        time.sleep(0.005)
server = socket.create_server(("127.0.0.1", port))
while not (data / "fenced").exists():
    time.sleep(0.005)
sys.exit(int((data / "fenced").read_text()))
"""


def test_a_fenced_leader_becomes_the_standby_and_another_end_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "home.py").write_text(HOME)

    async def act() -> None:
        command = f"{sys.executable} {tmp_path}/home.py {{port}} {{data}} {tmp_path}"
        cluster = LocalCluster(command, tmp_path, nodes=2, standby=True)
        first, second = cluster.nodes
        assert cluster.bootstrap == "127.0.0.1:0,127.0.0.1:0"
        await cluster.start()
        try:
            assert cluster.bootstrap == f"127.0.0.1:{first.proxy.port},127.0.0.1:{second.proxy.port}"
            assert cluster.node(0.9) is first
            assert not second.is_listening()
            (first.data / "fenced").write_text("75")
            await until(lambda: first.ended_with == 75)
            (first.data / "fenced").unlink()
            (tmp_path / "leads").rmdir()
            # else the first, started again, may be quicker
            await until(second.is_listening)
            await cluster.mend()
            assert first.is_running
            assert cluster.node(0.1) is second
            (second.data / "fenced").write_text("3")
            await until(lambda: second.ended_with == 3)
            with pytest.raises(RuntimeError, match="ended with 3"):
                await cluster.mend()
            (second.data / "fenced").unlink()
            (tmp_path / "leads").rmdir()
            await cluster.mend(any_status=True)
            assert second.is_running
        finally:
            await cluster.close()

    asyncio.run(act())


def test_nodes_have_numbers_and_directories_and_links_lead_upstream(tmp_path: Path) -> None:
    async def act() -> None:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"upstream")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = free_port()
        target = server.sockets[0].getsockname()[1]
        listener = LISTENER.replace("time.sleep", 'open("{data}/{node}", "w"); time.sleep')
        cluster = LocalCluster(listener, tmp_path, nodes=3, links=[(port, target)])
        await cluster.start()
        try:
            assert [cluster.node(share).number for share in (0.0, 0.4, 0.99)] == [1, 2, 3]
            for node in cluster.nodes:
                await until((node.data / str(node.number)).exists)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read(100) == b"upstream"
            writer.close()
            assert set(Nemesis(cluster, 1).kinds) >= {*KINDS, *LINK_KINDS, "fill"}
        finally:
            await cluster.close()
            server.close()

    asyncio.run(act())


def test_a_broker_gets_no_port_that_an_outgoing_connection_may_take(tmp_path: Path) -> None:
    ports = {LocalBroker(LISTENER, tmp_path / str(n))._port for n in range(20)}
    assert max(ports) < int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def test_a_fault_that_is_interrupted_is_mended_and_written_down(tmp_path: Path) -> None:
    async def act() -> list[str]:
        cluster = LocalCluster(LISTENER, tmp_path)
        (broker,) = cluster.nodes
        await cluster.start()
        clock = asyncio.get_running_loop().time
        with Writer(tmp_path / "history", {}, lambda: clock() * 1000) as writer:
            # the first fault of this seed is a broker that is killed
            kinds = Nemesis(cluster, 0).kinds
            seed = next(seed for seed in range(100) if next(schedule(seed, kinds)).kind == "kill")
            nemesis = Nemesis(cluster, seed, hurry=100.0)
            running = asyncio.ensure_future(nemesis(writer))
            await until(lambda: not broker.is_running)
            running.cancel()
            await asyncio.wait([running])
            assert broker.is_running
        await cluster.close()
        return nemesis.done

    assert asyncio.run(act()) == ["kill"]
    lines = [json.loads(line) for line in (tmp_path / "history").read_text().splitlines()]
    assert [(line.get("kind"), line.get("node")) for line in lines] == [(None, None), ("kill", 1)]
