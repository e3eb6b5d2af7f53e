"""A cluster without share groups, and nodes of a tier in front of it."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path

from tests.harness.broker import KAFKA_LIBS, QUICK_GROUPS, ROOT, Broker, free_port
from tests.harness.links import Links

VERSIONS = {"3.9.1": ROOT / "build/jars/kafka-3.9.1", "4.3.1": KAFKA_LIBS}
"""Jars of the clusters that nodes are tried in front of."""
LIBS = Path(os.environ.get("UPSTREAM_LIBS", VERSIONS["3.9.1"]))
"""Those of a single broker."""
SMALL = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
ONE_COPY = {"sharecore.tier.replication.factor": "1", "sharecore.tier.min.insync.replicas": "1"}
TIER = QUICK_GROUPS | ONE_COPY | {"sharecore.tier.slots": "4"}
THREE_COPIES = {"sharecore.tier.replication.factor": "3", "sharecore.tier.min.insync.replicas": "2"}
"""Of the state, in front of three brokers."""
_JAVA_OPTIONS = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_numbers = itertools.count()


class _Part(Broker):
    """A controller or a broker of a cluster of several."""

    def __init__(
        self, home: Path, number: int, controller: str, settings: dict[str, str], version: str
    ) -> None:
        super().__init__(home, "apache", settings, libs=VERSIONS[version])
        self._number, self._controller = number, controller

    def _apache_environment(self, properties: Path) -> dict[str, str]:
        return super()._apache_environment(properties) | {
            "SUITE_ROLE": "broker" if self._controller else "controller",
            "SUITE_NODE_ID": str(self._number),
            "SUITE_LISTENER": "EXTERNAL" if self._controller else "CONTROLLER",
            "SUITE_CONTROLLER": self._controller or f"{self._number}@127.0.0.1:{self.port}",
            "BROKER_JAVA_OPTS": os.environ.get("BROKER_JAVA_OPTS", _JAVA_OPTIONS),
        }


class Cluster:
    """A controller and brokers of Apache Kafka, with a replica of everything on each.

    Args:
        version: one of `VERSIONS`.
        count: of brokers.
        settings: of all brokers, beyond those.
        links: has each of `nodes` nodes reach each broker over a link of its own, and the brokers each other.

    Attributes:
        ways: the links of each node, by its number from 1 on: one for each broker.
        sights: the links of each broker to the controller, and of the other brokers to it.
    """

    def __init__(
        self,
        home: Path,
        version: str = "3.9.1",
        settings: Mapping[str, str] | None = None,
        links: Links | None = None,
        nodes: int = 0,
        count: int = 3,
    ) -> None:
        replicas, in_sync = str(count), str(max(1, count - 1))
        given = {
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "group.initial.rebalance.delay.ms": "0",
        } | dict(settings or {})
        self._controller = _Part(home / "controller", 100, "", given, version)
        self.ways: dict[int, list[int]] = {number: [] for number in range(1, nodes + 1)}
        self.sights: list[tuple[int, ...]] = []
        self.brokers = []
        for number in range(count):
            port = self._controller.port if links is None else links.open(self._controller.port)
            broker = _Part(home / f"broker-{number}", number, f"100@127.0.0.1:{port}", given, version)
            if links is not None:
                between = _listener(links, "BETWEEN")
                ways = {node: _listener(links, f"NODE{node}") for node in self.ways}
                for node, way in ways.items():
                    self.ways[node].append(way[1])
                told = " ".join(each for each, _ in (between, *ways.values()))
                broker.environment["APACHE_LISTENERS"] = told
                self.sights.append((port, between[1]))
            self.brokers.append(broker)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def bootstrap_of(self, node: int) -> str:
        """As one of the nodes reaches the brokers."""
        ways = self.ways.get(node)
        return self.bootstrap if ways is None else ",".join(f"127.0.0.1:{port}" for port in ways)

    def start(self) -> None:
        """Start all of them."""
        for each in (self._controller, *self.brokers):
            each.start()

    def cpu_seconds(self) -> float:
        """User and system time so far, of brokers and controller."""
        return sum(each.cpu_seconds() for each in (*self.brokers, self._controller))

    @property
    def pids(self) -> list[int]:
        """Processes of brokers and controller."""
        return [each.pid for each in (*self.brokers, self._controller)]

    def kill(self) -> None:
        """End all of them."""
        for each in (*self.brokers, self._controller):
            each.kill()


def _listener(links: Links, name: str) -> tuple[str, int]:
    """Return a listener of a broker behind a link, as `apache.sh` takes it, and the link."""
    port = free_port()
    link = links.open(port)
    return f"{name}:{port}:{link}", link


class Nodes:
    """Nodes in front of a cluster, of one tier.

    Args:
        bootstrap: of the cluster.
        settings: of all nodes, beyond `TIER`.
    """

    def __init__(self, home: Path, bootstrap: str, **settings: str) -> None:
        self.topic = f"__state-{next(_numbers)}"
        self.bootstrap = bootstrap
        self._home = home
        self._settings = TIER | {"sharecore.tier.state.topic": self.topic} | settings
        self.made: list[Broker] = []

    def add(self, bootstrap: str = "", **settings: str) -> Broker:
        """Return a node that is not started yet.

        Args:
            bootstrap: of the cluster, as this node reaches it.
        """
        number = len(self.made) + 1
        given = self._settings | {"node.id": str(number)} | settings
        home = self._home / f"node-{number}"
        self.made.append(Broker(home, "sharecore", given, ("--upstream", bootstrap or self.bootstrap)))
        return self.made[-1]

    def start(self) -> None:
        """Start all that were added."""
        for node in self.made:
            node.start()

    def kill(self) -> None:
        """End all of them."""
        for node in self.made:
            node.kill()


def wait_until(node: Broker, text: str, times: int = 1, seconds_max: float = 40) -> None:
    """Until a node has said something so many times."""
    until = time.monotonic() + seconds_max
    while node.read_log().count(text) < times:
        assert time.monotonic() < until, f"{text!r} was not said {times} times:\n{node.read_log()}"
        time.sleep(0.02)
