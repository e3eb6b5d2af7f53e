"""State that has begun to change and waits for the persister."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.reference.record import StateBatch


@dataclass(frozen=True, slots=True)
class Write:
    """What the persister is asked to write; ends with the partition's `commit` or `rollback`.

    Attributes:
        id: names the write to `commit` and `rollback`; grows within a partition.
        start_offset: the start offset before the operation.
        delivery_complete_count: terminal records from the start offset on, this write's included (KIP-1226).
    """

    id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]

    def batches(self) -> list[StateBatch]:
        """[(first, last, state, delivery_count)], sorted, neighbours of equal state joined."""
        return list(self.state_batches)
