"""The cluster as clients see it: brokers, leaders and coordinators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from sharecore.config import Listener
from sharecore.errors import ErrorCode

if TYPE_CHECKING:
    from sharecore.protocol import messages
    from sharecore.storage.identity import Identity

NOBODY = -1
NO_EPOCH = -1
"""Stands for a leader epoch that the client does not know."""


class Node(NamedTuple):
    """A broker and its address."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Leader(NamedTuple):
    """Leader of a partition; `node_id` is `NOBODY` without one."""

    node_id: int
    epoch: int


class Cluster(Protocol):
    """Brokers and their leadership."""

    @property
    def leads_all(self) -> bool:
        """Whether this broker always leads every partition: `check_leader` never raises."""

    @property
    def leases_always(self) -> bool:
        """Whether `may_lease` is always true."""

    def may_lease(self) -> bool:
        """Return whether records may be leased: no other broker can lead now what this one leads."""

    def nodes(self, listener: str) -> Sequence[Node]:
        """Return the live brokers, with their addresses on a listener."""

    def controller(self) -> int:
        """Return the broker presented to clients as the controller."""

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        """Return the leader of a partition and of its share partitions; epochs never decrease."""

    def coordinator(self, group_id: str) -> int:
        """Return the coordinator of a group; `NOBODY` without one."""

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        """Raise KafkaError(NOT_LEADER_OR_FOLLOWER) unless this broker leads the partition now."""

    def check_coordinator(self, group_id: str) -> None:
        """Raise KafkaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless it coordinates a group."""

    def check_asker(self, group_id: str, epoch: int) -> None:
        """Raise KafkaError(NOT_COORDINATOR) if a later coordinator of the group than the caller is known.

        Args:
            epoch: the caller's coordinator epoch; -1 if unknown.
        """


class SingleBroker:
    """A cluster of one broker, which leads everything.

    Args:
        listeners: listeners by name, with their bound ports.
        epoch: the leader epoch of all partitions.
    """

    leads_all = True
    leases_always = True

    def __init__(
        self,
        identity: Identity,
        listeners: Callable[[], Mapping[str, Listener]],
        rack: str | None,
        epoch: int = 0,
    ) -> None:
        self._node_id = identity.node_id
        self._leader = Leader(identity.node_id, epoch)
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

    def may_lease(self) -> bool:
        return True

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        """Accept: this broker leads every partition."""

    def check_coordinator(self, group_id: str) -> None:
        """Accept: this broker coordinates every group."""

    def check_asker(self, group_id: str, epoch: int) -> None:
        """Accept: there is no other coordinator."""


def wrong_epoch(known: int, epoch: int) -> ErrorCode | None:
    """Return why a client must refresh its metadata first; None if it knows the leader epoch, or none.

    Args:
        known: the leader epoch that the client knows; `NO_EPOCH` if it knows none.
        epoch: the current one.
    """
    if known in (epoch, NO_EPOCH):
        return None
    return ErrorCode.UNKNOWN_LEADER_EPOCH if known > epoch else ErrorCode.FENCED_LEADER_EPOCH


def describe_partition(cluster: Cluster, topic_id: UUID, index: int) -> messages.MetadataResponsePartition:
    """Return a partition as in Metadata and DescribeTopicPartitions; its leader is its only replica."""
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
