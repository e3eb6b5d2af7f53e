"""Metadata of the cluster (brokers, topics, leaders)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sharecore.client.wire.brokers import AnySettings, Brokers
from sharecore.client.wire.connection import Connection, Dial
from sharecore.client.wire.refusals import accept, group_error
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

if TYPE_CHECKING:
    from sharecore.protocol.received import (
        Coordinator,
        FindCoordinatorResponse,
        MetadataResponse,
        ShareAcknowledgeLeaderIdAndEpoch,
        ShareAcknowledgeNodeEndpoint,
        ShareFetchLeaderIdAndEpoch,
        ShareFetchNodeEndpoint,
    )

    NewLeader = ShareFetchLeaderIdAndEpoch | ShareAcknowledgeLeaderIdAndEpoch
    Endpoint = ShareFetchNodeEndpoint | ShareAcknowledgeNodeEndpoint

_GROUP, _SHARE = 0, 2
"""Coordinator types."""


class TopicPartition(NamedTuple):
    """A partition by topic name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A share partition's topic ID and index."""

    topic_id: UUID
    partition: int


class Leader(NamedTuple):
    """The leader of a partition; `node` is -1 without one."""

    node: int
    epoch: int


@dataclass(slots=True)
class Topic:
    """A topic and the leaders of its partitions."""

    name: str
    leaders: dict[int, Leader] = field(default_factory=dict)


class Backoff:
    """Delays that double from `first_ms` to `last_ms`, each shortened at random by up to a fifth."""

    def __init__(self, first_ms: int, last_ms: int) -> None:
        self._first, self._last = first_ms / 1000, last_ms / 1000
        self._next = self._first

    def reset(self) -> None:
        self._next = self._first

    def seconds(self) -> float:
        """Return the next delay."""
        now, self._next = self._next, min(self._last, self._next * 2)
        return now * random.uniform(0.8, 1.0)


class Cluster(Brokers[AnySettings]):
    """Topic metadata, and connections: one per broker for data, and one for the coordinator.

    Args:
        dial: opens all connections, whatever the brokers' addresses.
    """

    def __init__(self, settings: AnySettings, dial: Dial | None = None) -> None:
        super().__init__(settings, dial=dial)
        self.topics: dict[UUID, Topic] = {}
        self.controller = -1
        """The controller; -1 if unknown."""

    async def refresh(self, names: Iterable[str] = (), topic_ids: Iterable[UUID] = ()) -> dict[str, int]:
        """Fetch the metadata of the brokers and of topics by name or ID, from any broker.

        Returns:
            The error codes of topics, by name.

        Raises:
            KafkaError: no broker could be reached, or the response has an error.
        """
        connection = await self.any_connection()
        topics: list[dict[str, object]] = [{"name": name} for name in sorted(names)]
        topics += [{"topic_id": topic_id, "name": None} for topic_id in sorted(topic_ids)]
        response: MetadataResponse = await connection.request(
            calls.METADATA, {"topics": topics, "allow_auto_topic_creation": False}
        )
        if getattr(response, "error_code", 0):
            raise KafkaError(response.error_code, "metadata was refused")
        self._nodes = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self.controller = response.controller_id
        refused: dict[str, int] = {}
        for topic in response.topics:
            if topic.error_code:
                if topic.name is not None:
                    refused[topic.name] = topic.error_code
                if topic.topic_id in self.topics:
                    self.topics[topic.topic_id].leaders.clear()
                continue
            if topic.topic_id is None or topic.name is None:
                continue
            known = self.topics.setdefault(topic.topic_id, Topic(topic.name))
            for partition in topic.partitions:
                leader = Leader(partition.leader_id, partition.leader_epoch)
                before = known.leaders.get(partition.partition_index)
                if before is None or leader.epoch >= before.epoch:
                    known.leaders[partition.partition_index] = leader
        return refused

    def leader(self, partition: TopicIdPartition) -> int:
        """Return the leader of a partition, -1 if unknown."""
        topic = self.topics.get(partition.topic_id)
        leader = topic.leaders.get(partition.partition) if topic is not None else None
        return leader.node if leader is not None and leader.node in self._nodes else -1

    def learn_leader(
        self, partition: TopicIdPartition, current: NewLeader | None, endpoints: Iterable[Endpoint]
    ) -> bool:
        """Store a new leader reported by a former one; return whether it was news."""
        for endpoint in endpoints:
            self._nodes.setdefault(endpoint.node_id, (endpoint.host, endpoint.port))
        topic = self.topics.get(partition.topic_id)
        if topic is None or current is None or current.leader_id not in self._nodes:
            return False
        before = topic.leaders.get(partition.partition)
        if before is not None and current.leader_epoch <= before.epoch:
            return False
        topic.leaders[partition.partition] = Leader(current.leader_id, current.leader_epoch)
        return True

    def forget_leader(self, partition: TopicIdPartition) -> None:
        """Forget a leader that does not lead; until the next refresh there is none."""
        topic = self.topics.get(partition.topic_id)
        if topic is not None:
            topic.leaders.pop(partition.partition, None)

    async def coordinator(self, group_id: str) -> Connection:
        """Return a dedicated connection to the group's coordinator.

        Raises:
            KafkaError: it cannot be located or reached now.
        """
        found = await self._find_coordinator(_GROUP, group_id)
        if found.error_code:
            raise group_error(found, group_id)
        if found.node_id < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {group_id} has no coordinator")
        return await self._connect(f"coordinator {found.node_id}", found.host, found.port)

    async def share_coordinator(self, key: str) -> Connection:
        """Return a connection to the share coordinator of a share partition, by its coordinator key.

        Raises:
            KafkaError: it cannot be located or reached now, or the permission CLUSTER_ACTION is missing.
        """
        found = accept(await self._find_coordinator(_SHARE, key))
        if found.node_id < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{key} has no share coordinator")
        return await self._connect(f"coordinator {found.node_id}", found.host, found.port)

    async def _find_coordinator(self, kind: int, key: str) -> Coordinator:
        connection = await self.any_connection()
        message = {"key_type": kind, "coordinator_keys": [key]}
        answer: FindCoordinatorResponse = await connection.request(calls.FIND_COORDINATOR, message)
        (found,) = answer.coordinators
        return found
