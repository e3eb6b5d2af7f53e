"""The answers of ShareFetch and ShareAcknowledge: partitions by topic, with their leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sharecore.broker.cluster import Cluster
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

    Attributes:
        partitions: what it tells of each.
        served: those of which it brings records.
        failed: those that could not be fetched.
    """

    def __init__(self, cluster: Cluster, listener: str, lock_ms: int) -> None:
        self._cluster = cluster
        self._listener = listener
        self._lock_ms = lock_ms
        self.partitions: dict[SharePartitionId, dict[str, Any]] = {}
        self.served: list[SharePartitionId] = []
        self.failed: list[SharePartitionId] = []
        self._redirected: set[int] = set()

    def name(self, partition: SharePartitionId, **fields: Any) -> None:
        """Names a partition, or says more of one that is named."""
        entry = self.partitions.get(partition)
        if entry is None:
            leader, epoch = self._cluster.leader(*partition)
            current = {"leader_id": leader, "leader_epoch": epoch}
            entry = {"partition_index": partition[1], "current_leader": current}
            self.partitions[partition] = entry
        entry.update(fields)

    def refuse(self, partition: SharePartitionId, error: KafkaError, prefix: str = "") -> None:
        """Names a partition with its error.

        Args:
            prefix: of the names of the fields: `acknowledge_`, where an answer has room for two errors.
        """
        if error.code in _REDIRECTS:
            self._redirected.add(self._cluster.leader(*partition).node_id)
        self.name(
            partition,
            **{f"{prefix}error_code": error.code, f"{prefix}error_message": error.message or None},
        )

    def fetched(self, fetch: PartitionFetch) -> None:
        """Names a partition with what was acquired of it."""
        partition = fetch.partition.id
        acquired = [
            {"first_offset": first, "last_offset": last, "delivery_count": count}
            for first, last, count in fetch.acquired
        ]
        self.name(partition, records=fetch.records, acquired_records=acquired)
        if acquired:
            self.served.append(partition)
        if fetch.error is not None:
            self.refuse(partition, fetch.error)
            self.failed.append(partition)

    def acknowledged(self, outcomes: Mapping[SharePartitionId, KafkaError | None], prefix: str = "") -> None:
        """Names the partitions of which records were acknowledged, each with its error where there is one."""
        for partition, error in outcomes.items():
            self.name(partition)
            if error is not None:
                self.refuse(partition, error, prefix)

    def message(self) -> dict[str, Any]:
        """The whole answer."""
        topics: dict[UUID, list[dict[str, Any]]] = {}
        for (topic_id, _), entry in self.partitions.items():
            topics.setdefault(topic_id, []).append(entry)
        return {
            "acquisition_lock_timeout_ms": self._lock_ms,
            "responses": [
                {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()
            ],
            "node_endpoints": self._endpoints(),
        }

    def _endpoints(self) -> list[dict[str, Any]]:
        """Where the leaders are of partitions that are led elsewhere (KIP-951)."""
        if not self._redirected:
            return []
        return [
            node._asdict() for node in self._cluster.nodes(self._listener) if node.node_id in self._redirected
        ]
