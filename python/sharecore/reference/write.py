"""A state change that has begun and waits for the persister."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.reference.record import StateBatch


@dataclass(frozen=True, slots=True)
class Write:
    """A write for the persister; ends with the partition's `commit` or `rollback`.

    Attributes:
        id: identifies the write in `commit` and `rollback`; increases within a partition.
        start_offset: the start offset before the operation.
        delivery_complete_count: terminal records from the start offset, including this write (KIP-1226).
    """

    id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]

    def batches(self) -> list[StateBatch]:
        """[(first, last, state, delivery_count)], sorted, neighbors with equal state merged."""
        return list(self.state_batches)
