"""Which archived offsets of a share partition are to be redriven, and in which portions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sharecore.jobs.changes import Change
from sharecore.jobs.windows import archived
from sharecore.spark.ranges import Range, Ranges, split

REJECTED, EXHAUSTED, ALL = "rejected", "exhausted", "all"
OUTCOMES = (REJECTED, EXHAUSTED, ALL)
CHUNK = 5_000
"""Offsets that one task redrives at most."""


class Portion(NamedTuple):
    """Ranges with their delivery counts, how many offsets they are, and how many were redriven before.

    A record that was archived before the delivery limit was rejected, or is gone from the log.
    """

    ranges: Sequence[Range]
    rejected: int
    exhausted: int
    done: int


def portions(
    history: Sequence[Change],
    limit: int,
    outcome: str = ALL,
    done: Iterable[tuple[int, int]] = (),
    size: int = CHUNK,
) -> tuple[int, list[Portion]]:
    """Return the state epoch of a history, and its archived offsets in portions of `size` at most.

    Args:
        limit: the group's delivery limit.
        outcome: one of OUTCOMES.
        done: (state epoch, offset) of what was redriven before; those of other state epochs do not count.
    """
    epochs = [change.state_epoch for change in history if change.state_epoch is not None]
    epoch = epochs[-1] if epochs else 0
    ranges = Ranges(
        each for each in archived(history) if outcome == ALL or (each[2] >= limit) == (outcome == EXHAUSTED)
    )
    before = ranges.offsets
    for state_epoch, offset in done:
        if state_epoch == epoch:
            ranges.cut(offset, offset)
    found = [_portion(some, limit) for some in split(ranges, -(-ranges.offsets // size))]
    if before > ranges.offsets:
        found.append(Portion((), 0, 0, before - ranges.offsets))
    return epoch, found


def _portion(ranges: Sequence[Range], limit: int) -> Portion:
    rejected = sum(last - first + 1 for first, last, count in ranges if count < limit)
    return Portion(ranges, rejected, sum(last - first + 1 for first, last, _ in ranges) - rejected, 0)
