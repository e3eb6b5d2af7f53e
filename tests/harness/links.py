"""Connections that can be cut without anybody being told: what is on its way waits, and comes late."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable

from tests.harness.broker import ROOT


class Links:
    """Ports that lead to other ports of this machine, served by a process of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "tests.harness.links"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def open(self, target: int) -> int:
        """Return a port that leads to another."""
        return int(self._ask(f"open {target}"))

    def cut(self, *ports: int) -> None:
        """Nothing comes through any more, in either direction; connections stay open on both sides."""
        self._ask(f"cut {' '.join(map(str, ports))}")

    def mend(self, *ports: int) -> None:
        """Goes on where it was cut: what was sent meanwhile comes now."""
        self._ask(f"mend {' '.join(map(str, ports))}")

    def close(self) -> None:
        """End all of it."""
        self._process.kill()
        self._process.wait()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()


class _End(asyncio.Protocol):
    """One side of a connection: what comes in goes out at the other."""

    def __init__(self, link: _Link, made: Callable[[_End], object]) -> None:
        self.link = link
        self.other: _End | None = None
        self._made = made
        self._room = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()
        self.link.ends.add(self)
        self._made(self)

    def data_received(self, data: bytes) -> None:
        assert self.other is not None
        self.other.transport.write(data)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.link.ends.discard(self)
        if self.other is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        self._room = False
        self.refresh()

    def resume_writing(self) -> None:
        self._room = True
        self.refresh()

    def refresh(self) -> None:
        """Reads on the other side if there is room here, and nothing is cut."""
        if self.other is None or self.other.transport.is_closing():
            return
        if self._room and not self.link.is_cut:
            self.other.transport.resume_reading()
        else:
            self.other.transport.pause_reading()


class _Link:
    def __init__(self, target: int) -> None:
        self._target = target
        self.is_cut = False
        self.ends: set[_End] = set()
        self._mended = asyncio.Event()
        self._mended.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _End(self, self._accepted), "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def set(self, is_cut: bool) -> None:
        self.is_cut = is_cut
        if is_cut:
            self._mended.clear()
        else:
            self._mended.set()
        for end in self.ends:
            end.refresh()

    def _accepted(self, near: _End) -> None:
        task = asyncio.get_running_loop().create_task(self._join(near))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, near: _End) -> None:
        await self._mended.wait()

        def made(far: _End) -> None:
            near.other, far.other = far, near

        try:
            _, far = await asyncio.get_running_loop().create_connection(
                lambda: _End(self, made), "127.0.0.1", self._target
            )
        except OSError:
            near.transport.abort()
            return
        near.refresh()
        far.refresh()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    links: dict[int, _Link] = {}
    while line := (await reader.readline()).decode():
        what, *numbers = line.split()
        if what == "open":
            link = _Link(int(numbers[0]))
            port = await link.listen()
            links[port] = link
            print(port, flush=True)
        else:
            for number in numbers:
                links[int(number)].set(what == "cut")
            print("done", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve())
