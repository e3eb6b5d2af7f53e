"""Merging earlier share state with new state, one offset at a time."""

from __future__ import annotations

from collections.abc import Iterable

from sharecore.reference.record import StateBatch, coalesce


def combine(
    existing: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int = -1
) -> list[StateBatch]:
    """Return the state after a write: per offset, the highest delivery count wins, then the highest state.

    Args:
        existing: (first, last, state, delivery_count) as stored; may overlap.
        new: the same form, newly written.
        start_offset: offsets below it are dropped; -1 keeps them.

    Returns:
        Batches sorted by offset, neighbors with equal state and count merged.
    """
    winners: dict[int, tuple[int, int]] = {}
    for first, last, state, count in [*existing, *new]:
        for offset in range(max(first, start_offset), last + 1):
            winners[offset] = max(winners.get(offset, (-1, -1)), (count, state))
    return coalesce((o, o, winners[o][1], winners[o][0]) for o in sorted(winners))
