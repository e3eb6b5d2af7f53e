"""The cluster that clients see: its brokers, and which of them leads and coordinates what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from sharecore.config import Listener
from sharecore.errors import ErrorCode

if TYPE_CHECKING:
    from sharecore.storage.identity import Identity

NOBODY = -1
NO_EPOCH = -1
"""A client does not say which epoch of a leader it knows of."""


class Node(NamedTuple):
    """A broker, and where a client finds it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Leader(NamedTuple):
    """Who leads a partition; `node_id` is `NOBODY` while nobody does."""

    node_id: int
    epoch: int


class Cluster(Protocol):
    """Who the brokers are, and what each of them leads."""

    @property
    def leads_all(self) -> bool:
        """Whether this broker leads every partition at all times: `check_leader` never raises."""

    def nodes(self, listener: str) -> Sequence[Node]:
        """Return the live brokers, with the addresses that clients of a listener use."""

    def controller(self) -> int:
        """Return the broker that clients take for the controller."""

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        """Return the leader of a partition and of its share partitions; epochs never fall."""

    def coordinator(self, group_id: str) -> int:
        """Return the broker that coordinates a group; `NOBODY` while none does."""

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        """Raise KafkaError(NOT_LEADER_OR_FOLLOWER) unless this broker leads the partition now."""

    def check_coordinator(self, group_id: str) -> None:
        """Raise KafkaError(NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS) unless this broker coordinates
        the group now.
        """

    def check_asker(self, group_id: str, epoch: int) -> None:
        """Raise KafkaError(NOT_COORDINATOR) where another broker has coordinated the group since the one
        that asks.

        Args:
            epoch: under which it coordinates the group; -1 where it does not say.
        """


class SingleBroker:
    """A cluster of one, which leads everything.

    Args:
        listeners: by name, with the ports that they were given.
    """

    leads_all = True

    def __init__(
        self, identity: Identity, listeners: Callable[[], Mapping[str, Listener]], rack: str | None
    ) -> None:
        self._node_id = identity.node_id
        self._leader = Leader(identity.node_id, 0)
        self._listeners = listeners
        self._rack = rack

    def nodes(self, listener: str) -> Sequence[Node]:
        own = self._listeners()[listener]
        return [Node(self._node_id, own.advertised_host, own.advertised_port, self._rack)]

    def controller(self) -> int:
        return self._node_id

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        return self._leader

    def coordinator(self, group_id: str) -> int:
        return self._node_id

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        """It leads every partition."""

    def check_coordinator(self, group_id: str) -> None:
        """It coordinates every group."""

    def check_asker(self, group_id: str, epoch: int) -> None:
        """Nobody else coordinates any."""


def describe_partition(cluster: Cluster, topic_id: UUID, index: int) -> dict[str, Any]:
    """Return a partition as Metadata and DescribeTopicPartitions tell of it; its leader is its one
    replica.
    """
    leader = cluster.leader(topic_id, index)
    led = leader.node_id != NOBODY
    return {
        "error_code": ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        "partition_index": index,
        "leader_id": leader.node_id,
        "leader_epoch": leader.epoch,
        "replica_nodes": [leader.node_id] if led else [],
        "isr_nodes": [leader.node_id] if led else [],
    }
