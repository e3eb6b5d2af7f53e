"""What was counted of share partitions that are led no more: totals must not fall when a leader goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sharecore._core import Partition, observe_partitions

DELIVERIES = 16
"""Delivery counts that are told apart; the last stands for all above as well."""


@dataclass(slots=True)
class Tally:
    """Records of share partitions, counted together.

    Attributes:
        acknowledged: by acknowledge type: gaps, accepted, released, rejected, renewed.
        deliveries: leased for the first, second, ... time.
        timed_out: whose acquisition lock ran out.
        looked_at: records that expired, headers with times that are no number, record batches that cannot be
            expanded to look for them, bytes of record batches that answers left out.
    """

    acknowledged: list[int] = field(default_factory=lambda: [0] * 5)
    deliveries: list[int] = field(default_factory=lambda: [0] * DELIVERIES)
    timed_out: int = 0
    looked_at: list[int] = field(default_factory=lambda: [0] * 4)

    def take(self, engine: Partition) -> None:
        """Add what an engine has counted; raise KafkaError for one that has failed."""
        standing, acknowledged, deliveries = engine.observe()
        self.add(acknowledged, deliveries, standing[5], engine.looked_at())

    def add(
        self,
        acknowledged: Sequence[int],
        deliveries: Sequence[int],
        timed_out: int,
        looked_at: Sequence[int] = (),
    ) -> None:
        """Add what was counted elsewhere."""
        self.timed_out += timed_out
        for at, number in enumerate(looked_at):
            self.looked_at[at] += number
        if any(acknowledged):
            for at, records in enumerate(acknowledged):
                self.acknowledged[at] += records
        for at, records in enumerate(deliveries):
            self.deliveries[at] += records


def observe_together(
    engines: Sequence[Partition], ends: Sequence[int], now_ms: int
) -> tuple[int, int, int, int, Sequence[int], Sequence[int]]:
    """Many share partitions in one call (see `_core.observe_partitions`).

    Args:
        ends: of the log of each.

    Returns:
        lag, in flight, age in ms of the oldest lease, records whose lock ran out, by acknowledge type, by
        delivery count.
    """
    return observe_partitions(engines, ends, now_ms)
