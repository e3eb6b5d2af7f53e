"""Other systems' queues, where they are installed: NATS JetStream and Redis Streams."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from benches.requests.subject import Subject
from tests.harness.broker import free_port

_SECONDS_MAX = 20


def found(command: str) -> str | None:
    """Where a server's program is: on the path, or where Debian puts servers."""
    return shutil.which(command) or shutil.which(command, path="/usr/sbin")


class Server(Subject):
    """A server with a directory of its own.

    Args:
        home: an empty directory.
    """

    command: str

    def __init__(self, generator: str, home: Path, partitions: int) -> None:
        super().__init__(generator, partitions)
        self._home = home
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> tuple[int, int]:
        assert self._process is not None, "the server was never started"
        return self._port, self._process.pid

    def start(self) -> None:
        self.launch()
        self.set_up()

    def launch(self) -> None:
        """Start the process, and wait until it listens."""
        program = found(self.command)
        assert program is not None, f"{self.command} is not installed"
        with (self._home / "output.log").open("wb") as log:
            self._process = subprocess.Popen(
                [program, *self._arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._home,
            )
        until = time.monotonic() + _SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=_SECONDS_MAX).close()
                return
            except OSError:  # noqa: PERF203 - it does not listen yet
                ended = self._process.poll()
                if ended is not None:
                    said = (self._home / "output.log").read_text(errors="replace").strip()
                    raise RuntimeError(f"{self.command} ended with {ended}: {said[-2000:]}") from None
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def set_up(self) -> None:
        """Make what the steps need; raise RuntimeError if it is refused."""
        peer = socket.create_connection(("127.0.0.1", self._port), timeout=_SECONDS_MAX)
        with peer, peer.makefile("rb") as answers:
            for request in self._set_up():
                peer.sendall(request)
                self._check(answers.readline())

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def resident_bytes(self) -> int:
        _, pid = self.address
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @abstractmethod
    def _arguments(self) -> list[str]:
        """Of its command line."""

    @abstractmethod
    def _set_up(self) -> list[bytes]:
        """Requests that make what the steps need; each is answered with a line."""

    @abstractmethod
    def _check(self, answer: bytes) -> None:
        """Raises RuntimeError when the answer is a refusal."""


class NatsServer(Server):
    """A stream on files. It is synced every two minutes, not before it answers."""

    command = "nats-server"
    replicas: ClassVar = 1
    protocols: ClassVar = {"produce": "nats-produce", "share": "nats-share"}

    def _arguments(self) -> list[str]:
        return ["-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._home)]

    def _set_up(self) -> list[bytes]:
        stream: dict[str, object] = {
            "name": "WORK",
            "subjects": ["work.>"],
            "storage": "file",
            "retention": "limits",
            "num_replicas": self.replicas,
        }
        consumer = {
            "stream_name": "WORK",
            "config": {
                "durable_name": "pull",
                "ack_policy": "explicit",
                "max_ack_pending": -1,
                "max_waiting": 10_000,
            },
        }
        asked = (("STREAM.CREATE.WORK", stream), ("CONSUMER.DURABLE.CREATE.WORK.pull", consumer))
        # the server speaks first; so each line answers what was asked one before it
        requests = [b'CONNECT {"verbose":true}\r\n', b"SUB inbox 1\r\n"]
        for name, body in asked:
            data = json.dumps(body).encode()
            requests.append(b"PUB $JS.API.%s inbox %d\r\n%s\r\n" % (name.encode(), len(data), data))
            requests += [b""] * 2
        return [*requests, b""]

    def _check(self, answer: bytes) -> None:
        if answer.startswith(b"-ERR") or b'"error"' in answer:
            raise RuntimeError(answer.decode())


class RedisServer(Server):
    """A stream a partition in an append-only file, synced before it answers."""

    command = "redis-server"
    protocols: ClassVar = {"produce": "redis-produce", "share": "redis-share"}

    def _arguments(self) -> list[str]:
        settings = {"port": self._port, "bind": "127.0.0.1", "save": "", "dir": self._home}
        settings |= {"appendonly": "yes", "appendfsync": "always"}
        return [word for name, value in settings.items() for word in (f"--{name}", str(value))]

    def _set_up(self) -> list[bytes]:
        return [
            f"XGROUP CREATE work-{number} bench 0 MKSTREAM\r\n".encode() for number in range(self._partitions)
        ]

    def _check(self, answer: bytes) -> None:
        if not answer.startswith(b"+OK"):
            raise RuntimeError(answer.decode())
