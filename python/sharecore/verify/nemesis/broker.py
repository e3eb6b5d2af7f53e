"""A broker that this program starts, reaches through a proxy of its own, kills and stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from sharecore.verify.nemesis.proxy import Proxy

OWN_BROKER = (
    f"{shlex.quote(sys.executable)} -m sharecore serve --stop-with-stdin --data-dir {{data}} "
    "--set listeners=PLAINTEXT://127.0.0.1:{port} "
    "--set advertised.listeners=PLAINTEXT://127.0.0.1:{advertised} "
    "--set group.share.min.record.lock.duration.ms=1000 --set group.share.min.session.timeout.ms=6000 "
    "--set group.share.session.timeout.ms=6000 --set group.share.min.heartbeat.interval.ms=500 "
    "--set group.share.heartbeat.interval.ms=1000"
)
"""The command line of a broker whose locks and sessions may be short."""
_START_SECONDS_MAX = 90.0
_LOG_TAIL = 2000


class LocalBroker:
    """One broker process behind a proxy.

    Every signal goes to the process group of a process that this object started and has not waited for yet:
    its id cannot belong to anybody else.

    Args:
        command: the command line; {port}, {advertised} and {data} stand for the port to listen on, the port
            that clients are to be told, and a directory for its data.
        home: a directory of its own, for data and output.
    """

    def __init__(self, command: str, home: Path) -> None:
        self._port = _free_port()
        self.proxy = Proxy(self._port)
        self.data = home / "data"
        self.log = home / "broker.log"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect: the proxy."""
        return f"127.0.0.1:{self.proxy.port}"

    async def start(self) -> None:
        """Start the process, and wait until it listens.

        Raises:
            RuntimeError: it ended, or did not listen in time; the message has the end of its output.
        """
        if not self.proxy.port:
            await self.proxy.start()
        self.data.mkdir(parents=True, exist_ok=True)
        places = {"{port}": str(self._port), "{advertised}": str(self.proxy.port), "{data}": str(self.data)}
        words = shlex.split(self._command)
        for name, value in places.items():
            words = [word.replace(name, value) for word in words]
        self._process = process = self._spawn(words)
        until = time.monotonic() + _START_SECONDS_MAX
        while not _listens(self._port):
            if process.poll() is not None:
                raise RuntimeError(f"the broker ended with {process.returncode}:\n{self._tail()}")
            if time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"the broker does not listen on port {self._port}:\n{self._tail()}")
            await asyncio.sleep(0.05)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    def _spawn(self, words: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            try:
                # a pipe: with --stop-with-stdin a broker ends when this process does, however it ends
                return subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
                )
            except OSError as error:
                raise RuntimeError(f"{words[0]} cannot be started: {error.strerror}") from None

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-_LOG_TAIL:].strip()

    def _signal(self, number: int) -> None:
        if self._process is None or not self.is_running:
            raise RuntimeError("the broker does not run")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Send SIGKILL to the process and its children, and wait for its end."""
        if self._process is not None:
            if self._process.poll() is None:
                self._signal(signal.SIGKILL)
            self._process.wait()
            self._forget()

    def _forget(self) -> None:
        """Close the pipe to a process that has ended."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def pause(self) -> None:
        """Stop the process where it stands (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a stopped process go on."""
        self._signal(signal.SIGCONT)

    async def restart(self) -> None:
        """End the process as an administrator does (SIGTERM), and start it again."""
        self._signal(signal.SIGTERM)
        assert self._process is not None
        try:
            await asyncio.to_thread(self._process.wait, 30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget()
        await self.start()

    async def close(self) -> None:
        """End the process and the proxy."""
        self.kill()
        await self.proxy.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
