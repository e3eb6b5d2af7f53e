"""Queues of others with their users' recipes, where they are installed (`benches/queues/rivals`)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from abc import abstractmethod
from array import array
from pathlib import Path
from typing import ClassVar

from benches.queues.load import Load
from benches.queues.subjects import Run, Subject
from benches.requests.others import NatsServer, RedisServer, Server, found
from tests.harness.broker import ROOT, free_port

PROGRAM = Path(os.environ.get("QUEUE_RIVALS", ROOT / "build/go/queue-rivals"))
FILL_SECONDS_MAX = 300
_RABBIT = "/usr/lib/rabbitmq/bin/rabbitmq-server"


class RabbitServer(Server):
    """Debian's package of RabbitMQ, without what the package sets up."""

    command = "env"

    def __init__(self, generator: str, home: Path, partitions: int) -> None:
        super().__init__(generator, home, partitions)
        self._epmd_port = free_port()
        self._epmd: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._epmd = subprocess.Popen(
            ["epmd", "-address", "127.0.0.1", "-port", str(self._epmd_port)], stdin=subprocess.DEVNULL
        )
        super().start()

    def kill(self) -> None:
        super().kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()

    def _arguments(self) -> list[str]:
        home = str(self._home)
        named = {
            "HOME": home,
            # the script becomes the server, so that both have one process
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput",
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": home,
            "RABBITMQ_LOG_BASE": home,
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/plugins",
            "RABBITMQ_CONF_ENV_FILE": f"{home}/none",
            "ERL_EPMD_PORT": str(self._epmd_port),
        }
        return [*(f"{name}={value}" for name, value in named.items()), _RABBIT]

    def _set_up(self) -> list[bytes]:
        return []

    def _check(self, answer: bytes) -> None:
        """Nothing is asked."""


class Rival(Subject):
    """A server with the consumers of its recipe.

    Args:
        home: an empty directory.
    """

    server: ClassVar[type[Server]]
    system: ClassVar[str]

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self._server = self.server("", home, 1)
        self._runs = False

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return what has to be installed before this can be measured."""

    def start(self) -> None:
        if not self._runs:
            try:
                self._server.start()
            except BaseException:
                self._server.kill()
                raise
            self._runs = True

    def kill(self) -> None:
        self._server.kill()

    @property
    def pid(self) -> int:
        return self._server.address[1]

    def able(self, run: Run) -> bool:
        return run.load.topics == 1

    def create(self, load: Load, topic: str) -> None:
        self._program("create", topic=topic)

    def fill(self, load: Load, topic: str, began_ns: int) -> array[int]:
        with tempfile.TemporaryDirectory() as scratch:
            path, sent_path = Path(scratch) / "load", Path(scratch) / "sent"
            load.write(path, began_ns)
            named = {"rate": load.rate, "began_ns": began_ns, "load": path, "sent": sent_path}
            self._program("fill", topic=topic, **named)
            sent = array("q")
            sent.frombytes(sent_path.read_bytes())
            return sent

    def _program(self, action: str, **named: object) -> None:
        words = [f"{name}={value}" for name, value in named.items()]
        command = [str(PROGRAM), self.system, action, f"address={self.address}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FILL_SECONDS_MAX)
        if done.returncode:
            raise RuntimeError(
                f"{self.system} {action} ended with {done.returncode}: {done.stderr[-2000:].strip()}"
            )

    def command(self, run: Run, topic: str, group: str) -> list[str]:
        place = [f"address={self.address}", f"topic={topic}", f"group={group}"]
        return [str(PROGRAM), self.system, "consume", *place]

    @property
    def address(self) -> str:
        """Where the client connects."""
        return f"127.0.0.1:{self._server.address[0]}"


class Nats(Rival):
    """Order: a consumer a shard, `max_ack_pending` 1. Times: message schedules. Back-off: NAK, a delay."""

    server = NatsServer
    system = "nats"
    durability = "page cache, synced every 2 minutes"

    @classmethod
    def missing(cls) -> str | None:
        return None if found("nats-server") else "nats-server 2.12 or later"


class Redis(Rival):
    """Order: a stream and a reader a shard. Times and back-off: a sorted set."""

    server = RedisServer
    system = "redis"
    durability = "fsync"

    @classmethod
    def missing(cls) -> str | None:
        return None if found("redis-server") else "redis-server"


class Rabbit(Rival):
    """Order: a quorum queue a shard, prefetch 1. Back-off: queues whose messages expire. Times: no recipe."""

    server = RabbitServer
    system = "rabbit"
    durability = "fsync"
    keeps = False

    @classmethod
    def missing(cls) -> str | None:
        return None if Path(_RABBIT).exists() else "rabbitmq-server"

    def able(self, run: Run) -> bool:
        return super().able(run) and not run.load.due_s

    @property
    def address(self) -> str:
        return f"amqp://guest:guest@{super().address}/"


RIVALS: dict[str, type[Rival]] = {
    "NATS JetStream": Nats,
    "Redis Streams": Redis,
    "RabbitMQ": Rabbit,
}
