"""Nodes as one that is measured, with what makes and ends them."""

from __future__ import annotations

from pathlib import Path

from tests.harness.broker import Broker
from tests.harness.tier import THREE_COPIES, Cluster, Nodes


class Several:
    """Nodes in front of a cluster, which keeps as many copies of their state as it has brokers.

    Args:
        settings: of all of them.

    Attributes:
        made: the nodes.
    """

    def __init__(self, home: Path, cluster: Cluster | Broker, count: int, **settings: str) -> None:
        copies = THREE_COPIES if isinstance(cluster, Cluster) else {}
        self._nodes = Nodes(home, cluster.bootstrap, **copies, **settings)
        self.made = [self._nodes.add() for _ in range(count)]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.made)

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in self.made)

    def start(self) -> None:
        self._nodes.start()

    def kill(self) -> None:
        self._nodes.kill()
