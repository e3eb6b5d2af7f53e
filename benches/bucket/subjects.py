"""What is compared: ways to keep confirmed records when a machine is lost."""

from __future__ import annotations

import json
import os
import socket
import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from benches.requests.others import NatsServer, RedisServer
from benches.requests.subject import KafkaSubject, Subject
from confluent_kafka.admin import AdminClient, NewTopic
from tests.bucket.home import home_settings
from tests.bucket.takeovers import names_both, until
from tests.harness.broker import QUICK_GROUPS, Broker, free_port
from tests.harness.clients import QUIET
from tests.harness.tier import Cluster

_PAGE = os.sysconf("SC_PAGE_SIZE")
_READY_S = 60
THREE_COPIES = {
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
}


def resident_bytes(pids: list[int]) -> int:
    """Return the memory of all processes together."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE for pid in pids)


class Group(Subject):
    """Several processes that answer as one."""

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """All of them."""

    def resident_bytes(self) -> int:
        """Return the memory of all of them."""
        return resident_bytes(self.pids)


class Alone(KafkaSubject):
    """One broker.

    Args:
        settings: of the broker.
    """

    def __init__(
        self, generator: str, home: Path, partitions: int, settings: dict[str, str] | None = None
    ) -> None:
        super().__init__(generator, Broker(home, settings=QUICK_GROUPS | (settings or {})), partitions)


class Home(Group, KafkaSubject):
    """A broker whose home is a bucket, and its standby.

    Args:
        url: the bucket.
        settings: of both brokers.
    """

    def __init__(
        self, generator: str, home: Path, partitions: int, url: str, settings: dict[str, str] | None = None
    ) -> None:
        own = (home_settings(url, free_port()) | (settings or {}) | {"node.id": str(node)} for node in (1, 2))
        leader, self._standby = (Broker(home / each["node.id"], settings=each) for each in own)
        super().__init__(generator, leader, partitions)

    def _start_brokers(self) -> None:
        super()._start_brokers()
        self._standby.start()
        until(lambda: names_both(self._broker.bootstrap), "the leader names its standby")

    def kill(self) -> None:
        """Kill the standby first: it would take over."""
        self._standby.kill()
        super().kill()

    @property
    def pids(self) -> list[int]:
        """Leader and standby."""
        return [self._broker.pid, self._standby.pid]


class ApacheCluster(Group, KafkaSubject):
    """Three brokers of Apache Kafka and a controller, acks=all, three replicas, two in sync.

    The first broker leads all partitions of the topic, as the load generator asks one address.
    """

    def __init__(self, generator: str, home: Path, partitions: int) -> None:
        self.cluster = Cluster(home, "4.3.1", QUICK_GROUPS | THREE_COPIES)
        super().__init__(generator, self.cluster.brokers[0], partitions)

    def _start_brokers(self) -> None:
        self.cluster.start()

    def kill(self) -> None:
        """Kill all of them."""
        self.cluster.kill()

    @property
    def pids(self) -> list[int]:
        """Brokers and controller."""
        return self.cluster.pids

    def _make_topic(self, topic: str) -> None:
        replicas = [[0, 1, 2]] * self._partitions
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, **QUIET})
        admin.create_topics([NewTopic(topic, self._partitions, replica_assignment=replicas)])[topic].result(
            30
        )


class NatsReplica(NatsServer):
    """One server of a cluster of three; the stream has three replicas.

    Args:
        name: its name in the cluster.
        routes: the cluster's ports, its own first.
    """

    replicas = 3

    def __init__(self, generator: str, home: Path, partitions: int, name: str, routes: list[int]) -> None:
        home.mkdir(parents=True)
        super().__init__(generator, home, partitions)
        self.name = name
        self._routes = routes

    def _arguments(self) -> list[str]:
        own, *others = (f"nats://127.0.0.1:{port}" for port in self._routes)
        cluster = ["--cluster_name", "bench", "--cluster", own, "--routes", ",".join(others)]
        return [*super()._arguments(), "--name", self.name, *cluster]


class NatsCluster(Group):
    """Three servers of NATS JetStream. They sync every two minutes, not before they answer."""

    command = NatsServer.command
    protocols: ClassVar = NatsServer.protocols

    def __init__(self, generator: str, home: Path, partitions: int) -> None:
        super().__init__(generator, partitions)
        routes = [free_port() for _ in range(3)]
        self.servers = [
            NatsReplica(
                generator, home / str(number), partitions, f"n{number}", routes[number:] + routes[:number]
            )
            for number in range(3)
        ]
        self.leader = self.servers[0]

    def start(self) -> None:
        """Start all of them, and make the stream once they have elected a leader."""
        for server in self.servers:
            server.launch()
        self._until_it_works(self.servers[0].set_up)
        self.find_any_leader()

    def find_leader(self) -> None:
        """Find out who leads the stream; raise RuntimeError if nobody does."""
        with (
            socket.create_connection(("127.0.0.1", self.servers[0].address[0]), timeout=10) as peer,
            peer.makefile("rb") as answers,
        ):
            peer.sendall(
                b'CONNECT {"verbose":false}\r\nSUB inbox 1\r\nPUB $JS.API.STREAM.INFO.WORK inbox 0\r\n\r\n'
            )
            while not (line := answers.readline()).startswith(b"MSG "):
                if not line:
                    raise RuntimeError("the connection was closed")
            leader = json.loads(answers.readline()).get("cluster", {}).get("leader")
        found = [server for server in self.servers if server.name == leader]
        if not found:
            raise RuntimeError("the stream has no leader")
        self.leader = found[0]

    def find_any_leader(self) -> None:
        """Wait until the stream has a leader."""
        self._until_it_works(self.find_leader)

    def _until_it_works(self, work: Callable[[], None]) -> None:
        end = time.monotonic() + _READY_S
        while True:
            try:
                return work()
            except (OSError, RuntimeError, ValueError):  # noqa: PERF203 - it is being elected
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def kill(self) -> None:
        """Kill all of them."""
        for server in self.servers:
            server.kill()

    @property
    def address(self) -> tuple[int, int]:
        """The stream's leader."""
        return self.leader.address

    @property
    def pids(self) -> list[int]:
        """All servers."""
        return [server.address[1] for server in self.servers]


class RedisPair(Group, RedisServer):
    """Redis with a replica, both with appendfsync always; each write is followed by `WAIT 1 0`."""

    def __init__(self, generator: str, home: Path, partitions: int) -> None:
        super().__init__(generator, home / "primary", partitions)
        (home / "primary").mkdir(parents=True)
        (home / "replica").mkdir()
        self._replica = RedisReplica(generator, home / "replica", partitions, self._port)

    def start(self) -> None:
        """Start the primary and its replica."""
        self.launch()
        self._replica.launch()
        self.set_up()

    def kill(self) -> None:
        """Kill both."""
        self._replica.kill()
        super().kill()

    @property
    def pids(self) -> list[int]:
        """Primary and replica."""
        return [self.address[1], self._replica.address[1]]

    def _common(self) -> list[str]:
        return ["replicas=1"]


class RedisReplica(RedisServer):
    """The replica of a server on this machine.

    Args:
        primary: the port of that server.
    """

    def __init__(self, generator: str, home: Path, partitions: int, primary: int) -> None:
        super().__init__(generator, home, partitions)
        self._primary = primary

    def _arguments(self) -> list[str]:
        return [*super()._arguments(), "--replicaof", f"127.0.0.1 {self._primary}"]
