"""The answers of ShareFetch and ShareAcknowledge: partitions by topic, with their leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sharecore.broker.cluster import Cluster, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import PartitionFetch
from sharecore.session import SharePartitionId

_REDIRECTS = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class ShareAnswer:
    """An answer while its partitions come together, in the order in which they are first named.

    Args:
        cluster: knows the leaders.
        listener: of the client, whose addresses it is told.
        lock_ms: how long leases of the group run.
        blank: fields that partitions have where nothing else is told.

    Attributes:
        partitions: what it tells of each.
        served: those of which it brings records.
        failed: those that could not be fetched.
    """

    def __init__(self, cluster: Cluster, listener: str, lock_ms: int, **blank: Any) -> None:
        self._cluster = cluster
        self._listener = listener
        self._lock_ms = lock_ms
        self._blank = blank
        self.partitions: dict[SharePartitionId, dict[str, Any]] = {}
        self.served: list[SharePartitionId] = []
        self.failed: list[SharePartitionId] = []
        self._redirected: set[int] = set()

    def name(self, partition: SharePartitionId) -> dict[str, Any]:
        """What is told of a partition, which is named from now on."""
        entry = self.partitions.get(partition)
        if entry is None:
            leader = self._cluster.leader(*partition)
            entry = {**self._blank, "partition_index": partition[1], "current_leader": leader}
            self.partitions[partition] = entry
        return entry

    def refuse(self, partition: SharePartitionId, error: KafkaError, prefix: str = "") -> None:
        """Names a partition with its error.

        Args:
            prefix: of the names of the fields: `acknowledge_`, where an answer has room for two errors.
        """
        if error.code in _REDIRECTS:
            self._redirected.add(self._cluster.leader(*partition).node_id)
        entry = self.name(partition)
        entry[f"{prefix}error_code"] = error.code
        entry[f"{prefix}error_message"] = error.message or None

    def fetched(self, fetch: PartitionFetch) -> None:
        """Names a partition with what was acquired of it."""
        partition = fetch.partition.id
        entry = self.name(partition)
        entry["records"] = fetch.records
        if fetch.acquired:
            entry["acquired_records"] = fetch.acquired
            self.served.append(partition)
        if fetch.error is not None:
            self.refuse(partition, fetch.error)
            self.failed.append(partition)

    def acknowledged(self, outcomes: Mapping[Any, KafkaError | None], prefix: str = "") -> None:
        """Names the partitions of which records were acknowledged, each with its error where there is one;
        passes over what has no name.
        """
        for partition, error in outcomes.items():
            if partition is None:
                continue
            if error is None:
                self.name(partition)
            else:
                self.refuse(partition, error, prefix)

    def message(self) -> dict[str, Any]:
        """The whole answer."""
        topics: dict[UUID, list[dict[str, Any]]] = {}
        last: UUID | None = None
        entries: list[dict[str, Any]] = []
        for (topic_id, _), entry in self.partitions.items():
            if topic_id is not last:
                last, entries = topic_id, topics.setdefault(topic_id, [])
            entries.append(entry)
        return {
            "acquisition_lock_timeout_ms": self._lock_ms,
            "responses": list(topics.items()),
            "node_endpoints": self._endpoints(),
        }

    def _endpoints(self) -> list[Node]:
        """Where the leaders are of partitions that are led elsewhere (KIP-951)."""
        if not self._redirected:
            return []
        return [node for node in self._cluster.nodes(self._listener) if node.node_id in self._redirected]
