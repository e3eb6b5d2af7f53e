"""Logs of a broker's coordinators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.persister import Persister
from sharecore.sharestate.keys import SharePartitionKey


class StateLogs(Protocol):
    """Topics of coordinator records."""

    @property
    def self_compacting(self) -> bool:
        """Whether the logs themselves delete obsolete group records."""

    def logs(self, topic: str) -> Sequence[TopicLog]:
        """Return the partitions of a coordinator topic; raise COORDINATOR_NOT_AVAILABLE without it."""

    @property
    def owner_check(self) -> Callable[[int], None] | None:
        """Check that this broker owns a partition, or None if it always owns all of them.

        It raises KafkaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS).
        """

    def persister(self, local: Persister) -> Persister:
        """Return the persister for share state, wherever it is stored.

        Args:
            local: the persister of partitions owned by this broker.
        """

    def route(self, key: SharePartitionKey, partitions: int) -> int:
        """Return the state-topic partition of a share partition."""
