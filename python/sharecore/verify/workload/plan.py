"""The parameters of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DELIVERY_LIMIT = 5
LOCKS_MS = (2000, 15_000)
"""Acquisition lock durations to try: the first one that the cluster allows is used."""
ISOLATIONS = ("read_uncommitted", "read_committed")
"""Isolation levels of plain consumers, each in its own group."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A workload; the same seed makes the same choices, as far as the cluster's responses allow.

    Args:
        bootstrap: of the cluster.
        run: part of all topic and group names, and of each record, so that runs do not mix.
        settings: of sharecore's clients, beyond the bootstrap servers.
        confluent: the same for clients of confluent-kafka, by its names.
        seconds: how long the load lasts; the rest is processed afterwards.
        rate: records per second of all producers together.
        transactions: how many of the producers use transactions.
        bound_ms: a record must be delivered within this time after its lock expired.
    """

    bootstrap: str
    run: str
    seed: int
    group: str
    settings: Mapping[str, str] = field(default_factory=dict)
    confluent: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 600.0
    producers: int = 8
    transactions: int = 3
    workers: int = 32
    topics: int = 3
    partitions: int = 4
    rate: float = 400.0
    bound_ms: float = 60_000.0

    @property
    def topic_names(self) -> list[str]:
        """The topics of the load."""
        return [f"verify-{self.run}-{number}" for number in range(self.topics)]

    @property
    def life(self) -> str:
        """The topic and the share group that are created and deleted again and again."""
        return f"verify-{self.run}-life"

    def reader_group(self, isolation: str) -> str:
        """Return the plain consumers' group for an isolation level."""
        return f"verify-{self.run}-{isolation}"

    @property
    def group_names(self) -> list[str]:
        """All groups."""
        return [self.group, self.life, *map(self.reader_group, ISOLATIONS)]

    @property
    def places(self) -> list[tuple[str, int]]:
        """All partitions of the load."""
        return [(topic, partition) for topic in self.topic_names for partition in range(self.partitions)]
