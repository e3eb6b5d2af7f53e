"""Counters of share partitions that are no longer led, so that totals never decrease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sharecore._core import Partition, observe_partitions

DELIVERIES = 16
"""Delivery counts kept separately; the last includes all higher ones."""


@dataclass(slots=True)
class Tally:
    """Combined counters of share partitions.

    Attributes:
        acknowledged: records by acknowledge type: gaps, accepted, released, rejected, renewed.
        deliveries: records acquired for the first, second, ... time.
        timed_out: records whose acquisition lock expired.
        looked_at: expired records, headers with invalid times, record batches that could not be decompressed,
            bytes of record batches omitted from answers.
        late: records acquired after a back-off or a delivery time, and the milliseconds since their end.
    """

    acknowledged: list[int] = field(default_factory=lambda: [0] * 5)
    deliveries: list[int] = field(default_factory=lambda: [0] * DELIVERIES)
    timed_out: int = 0
    looked_at: list[int] = field(default_factory=lambda: [0] * 4)
    late: list[int] = field(default_factory=lambda: [0] * 2)

    def take(self, engine: Partition) -> None:
        """Add an engine's counters; raise KafkaError for a failed engine."""
        standing, acknowledged, deliveries = engine.observe()
        self.add(acknowledged, deliveries, standing[5], engine.looked_at(), engine.lateness())

    def add(
        self,
        acknowledged: Sequence[int],
        deliveries: Sequence[int],
        timed_out: int,
        looked_at: Sequence[int] = (),
        late: Sequence[int] = (),
    ) -> None:
        """Add the given counters."""
        self.timed_out += timed_out
        for at, number in enumerate(looked_at):
            self.looked_at[at] += number
        for at, number in enumerate(late):
            self.late[at] += number
        if any(acknowledged):
            for at, records in enumerate(acknowledged):
                self.acknowledged[at] += records
        for at, records in enumerate(deliveries):
            self.deliveries[at] += records


def observe_together(
    engines: Sequence[Partition], ends: Sequence[int], now_ms: int
) -> tuple[int, int, int, int, Sequence[int], Sequence[int]]:
    """Observe many share partitions in one call (see `_core.observe_partitions`).

    Args:
        ends: the log end offset of each.

    Returns:
        lag, in-flight records, age in ms of the oldest lease, expired locks, records by acknowledge type,
        records by delivery count.
    """
    return observe_partitions(engines, ends, now_ms)
