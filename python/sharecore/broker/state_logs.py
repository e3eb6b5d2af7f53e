"""Where the coordinators of a broker keep their records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.persister import Persister
from sharecore.sharestate.keys import SharePartitionKey


class StateLogs(Protocol):
    """The topics in which coordinators keep their records."""

    @property
    def self_compacting(self) -> bool:
        """Whether the logs themselves let go of records of groups that are out of date."""

    def logs(self, topic: str) -> Sequence[TopicLog]:
        """Return the partitions of a coordinator's topic; raise COORDINATOR_NOT_AVAILABLE without it."""

    @property
    def owner_check(self) -> Callable[[int], None] | None:
        """What raises KafkaError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless a partition is this
        broker's now; None where every partition always is.
        """

    def persister(self, local: Persister) -> Persister:
        """Return what keeps share state, wherever it lies.

        Args:
            local: keeps what lies in partitions of this broker's.
        """

    def route(self, key: SharePartitionKey, partitions: int) -> int:
        """Return the partition, out of so many, that holds the state of a share partition."""
