"""A broker process started by this program behind its own proxy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from sharecore.verify.nemesis.clock import Clock
from sharecore.verify.nemesis.proxy import Proxy

OWN_BROKER = (
    f"{shlex.quote(sys.executable)} -m sharecore serve --stop-with-stdin --data-dir {{data}} "
    "--set listeners=PLAINTEXT://127.0.0.1:{port} "
    "--set advertised.listeners=PLAINTEXT://127.0.0.1:{advertised} "
    "--set group.share.min.record.lock.duration.ms=1000 --set group.share.min.session.timeout.ms=6000 "
    "--set group.share.session.timeout.ms=6000 --set group.share.min.heartbeat.interval.ms=500 "
    "--set group.share.heartbeat.interval.ms=1000"
)
"""The command line of a broker that allows short locks and sessions."""
START_SECONDS_MAX = 90.0
_LOG_TAIL = 2000
_PORT_MIN, _EPHEMERAL_PORT_MIN = 15_000, 32_768
_PORT_TRIES = 100


class LocalBroker:
    """One broker process behind a proxy.

    Signals go to the process group of a process that this object started and has not reaped yet, so its ID
    cannot have been reused.

    Args:
        command: the command line; {port}, {advertised}, {data} and {node} stand for the port to listen on,
            the port to advertise to clients, a directory for its data, and its number.
        home: a directory for data and output.
        number: of this broker, from 1.
        with_clock: the process has a wall clock of its own.
    """

    can_fill_disk = hasattr(resource, "prlimit")
    """Whether this system can limit the files of another process."""

    def __init__(self, command: str, home: Path, number: int = 1, with_clock: bool = False) -> None:
        self.number = number
        self.clock = Clock(home / "clock") if with_clock else None
        self._port = _free_port()
        self.proxy = Proxy(self._port)
        self.data = home / "data"
        self.log = home / "broker.log"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients: the proxy."""
        return f"127.0.0.1:{self.proxy.port}"

    async def launch(self) -> None:
        """Start the proxy and the process.

        Raises:
            RuntimeError: the command cannot be run.
        """
        if not self.proxy.port:
            await self.proxy.start()
        self.data.mkdir(parents=True, exist_ok=True)
        places = {
            "{port}": str(self._port),
            "{advertised}": str(self.proxy.port),
            "{data}": str(self.data),
            "{node}": str(self.number),
        }
        words = shlex.split(self._command)
        for name, value in places.items():
            words = [word.replace(name, value) for word in words]
        self._forget()
        self._process = self._spawn(words)

    async def start(self) -> None:
        """Start the process, and wait until it listens.

        Raises:
            RuntimeError: it exited, or did not listen in time; the message contains the end of its output.
        """
        await self.launch()
        until = time.monotonic() + START_SECONDS_MAX
        while not self.is_listening():
            self.raise_if_ended()
            if time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"the broker does not listen on port {self._port}:\n{self._tail()}")
            await asyncio.sleep(0.05)

    def raise_if_ended(self) -> None:
        """Raise RuntimeError with the end of the output if the process has ended."""
        if (status := self.ended_with) is not None:
            raise RuntimeError(f"the broker ended with {status}:\n{self._tail()}")

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def ended_with(self) -> int | None:
        """The exit status of a process that has ended without a signal from here."""
        return None if self._process is None else self._process.poll()

    def is_listening(self) -> bool:
        """Return whether something accepts connections on the broker's port."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1) as probe:
                # one that gets this very port as its own is connected to itself
                return bool(probe.getsockname() != probe.getpeername())
        except OSError:
            return False

    def _spawn(self, words: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            try:
                # a pipe: with --stop-with-stdin a broker ends when this process does, however it ends
                return subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    env=os.environ | ({} if self.clock is None else self.clock.environment),
                )
            except OSError as error:
                raise RuntimeError(f"{words[0]} cannot be started: {error.strerror}") from None

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-_LOG_TAIL:].strip()

    def _signal(self, number: int) -> None:
        if self._process is None or not self.is_running:
            raise RuntimeError("the broker is not running")
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
        """Close the pipe to an ended process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def pause(self) -> None:
        """Suspend the process (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a suspended process."""
        self._signal(signal.SIGCONT)

    def fill_disk(self) -> None:
        """Let each write of the process to a file fail, as on a full disk."""
        self._limit_files(0)

    def free_disk(self) -> None:
        """Let writes succeed again, if the process has not ended."""
        if self.is_running:
            self._limit_files(None)

    def _limit_files(self, size: int | None) -> None:
        if self._process is None or not self.is_running:
            raise RuntimeError("the broker is not running")
        hard = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    async def terminate(self) -> None:
        """End the process as an administrator does (SIGTERM)."""
        self._signal(signal.SIGTERM)
        assert self._process is not None
        try:
            await asyncio.to_thread(self._process.wait, 30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget()

    async def close(self) -> None:
        """End the process and the proxy."""
        self.kill()
        await self.proxy.stop()


def _free_port() -> int:
    """Return a free port, if possible none that the system assigns to outgoing connections."""
    chance = random.SystemRandom()  # seeds of faults draw nothing here
    ports = (chance.randrange(_PORT_MIN, _EPHEMERAL_PORT_MIN) for _ in range(_PORT_TRIES))
    for port in (*ports, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            free: int = probe.getsockname()[1]
            return free
    raise RuntimeError("no port is free")
