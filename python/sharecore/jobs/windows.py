"""What of a share partition is not done: reckoned from its live state and the ends of its log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sharecore.jobs.changes import (
    ARCHIVED,
    AVAILABLE,
    TERMINAL,
    TOMBSTONE,
    UNKNOWN,
    Change,
    StateBatch,
)
from sharecore.jobs.invariants import settled_from
from sharecore.spark.ranges import Range, Ranges


@dataclass(frozen=True, slots=True)
class Window:
    """How far a group is in a partition; None is not known.

    Args:
        lag: offsets from the start offset to the log's end that are not settled.
        settled: offsets from the start offset on that need not be delivered any more.
        redelivered: offsets that were delivered, not acknowledged, and wait to be delivered again.
        lag_without_redelivered: offsets that, as far as is written, nobody was given yet. Who holds records
            at the moment is not part of the state that is written.
        delivery_count_max: of what is not settled.
        oldest_offset: the first offset that is not settled; None where all is.
    """

    lag: int | None
    settled: int | None
    redelivered: int
    lag_without_redelivered: int | None
    delivery_count_max: int
    oldest_offset: int | None


def window(
    start_offset: int,
    complete: int,
    batches: Sequence[StateBatch],
    log_start: int | None,
    log_end: int | None,
) -> Window:
    """Reckons a window.

    Args:
        start_offset, complete: of the state, -1 for not known; the broker that wrote no count wrote batches.
        log_start, log_end: of the partition, None where it is gone.
    """
    waiting = [
        (first, last, count) for first, last, state, count in batches if state == AVAILABLE and count > 0
    ]
    if start_offset == UNKNOWN or log_start is None or log_end is None:
        redelivered = sum(last - first + 1 for first, last, _ in waiting)
        return Window(None, None, redelivered, None, _most(waiting), None)
    start = max(start_offset, log_start)
    waiting = [(max(first, start), last, count) for first, last, count in waiting if last >= start]
    settled = complete if complete != UNKNOWN and start == start_offset else settled_from(start, batches)
    redelivered = sum(last - first + 1 for first, last, _ in waiting)
    lag = max(0, log_end - start - settled)
    oldest = first_unsettled(start, batches)
    return Window(
        lag,
        settled,
        redelivered,
        max(0, lag - redelivered),
        _most(waiting),
        oldest if oldest < log_end else None,
    )


def _most(waiting: Iterable[Range]) -> int:
    return max((count for _, _, count in waiting), default=0)


def first_unsettled(start: int, batches: Iterable[StateBatch]) -> int:
    """Return the first offset from `start` on that no state batch says is settled; batches ascend."""
    for first, last, state, _ in batches:
        if last < start:
            continue
        if first > start or state not in TERMINAL:
            break
        start = last + 1
    return start


def archived(changes: Iterable[Change]) -> Ranges:
    """Return the offsets that were archived in the present state epoch, with their delivery counts.

    A new state epoch, after a reset or a deletion, begins anew: what was archived before is delivered again.
    """
    found = Ranges()
    epoch: int | None = None
    for change in changes:
        if change.state_epoch is not None and change.state_epoch != epoch:
            found, epoch = Ranges(), change.state_epoch
        elif change.kind == TOMBSTONE:
            found, epoch = Ranges(), None
        for first, last, state, count in change.batches:
            if state == ARCHIVED:
                found.put(first, last, count)
    return found
