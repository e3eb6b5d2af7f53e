"""Windows of groups with rules: made small, so that they fill up, and held against their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from sharecore._core import Rules
from sharecore.clock import Clock
from sharecore.partition import leader as leader_module
from sharecore.partition.leader import SharePartition

SMALLER = 100
_READ_AT_ONCE = 40
"""So many records may come with what completes a window."""
_BATCH_RECORDS = 500
_UNSETTLED = (0, 1, 3)
"""Available, acquired, archiving."""
_MINUTE_MS = 61_000


@contextmanager
def small_windows() -> Iterator[None]:
    """`share.partition.max.waiting` counts a hundredth: logs of a simulation are short."""
    before: type[Rules] = vars(leader_module)["Rules"]  # a planted bug may have other rules

    def smaller(**rules: Any) -> Rules:
        return before(**{**rules, "max_waiting": rules["max_waiting"] // SMALLER})

    with mock.patch.object(leader_module, "Rules", smaller):
        yield


class Windows:
    """How wide the windows of share partitions may be: what has come in stays when a bound is lowered."""

    def __init__(self) -> None:
        self._widest: dict[str, tuple[int, int]] = {}

    def wrong(self, leader: SharePartition) -> Iterator[tuple[str, str]]:
        """What is wrong with the size of a window and of its state (I11)."""
        engine, config = leader.engine, leader.config
        assert engine is not None
        where, locks = leader.key.coordinator_key(), config.share_partition_max_record_locks
        waiting = config.share_partition_max_waiting // SMALLER if engine.has_rules else 0
        before = self._widest.get(where, (0, 0))
        waiting, locks = self._widest[where] = max(waiting, before[0]), max(locks, before[1])
        runs = engine.inflight()
        if not engine.has_rules:
            if engine.end_offset - engine.start_offset > locks + waiting + _BATCH_RECORDS:
                yield "memory", f"{engine.end_offset - engine.start_offset} offsets in flight"
            return
        unsettled = sum(last - first + 1 for first, last, state, _ in runs if state in _UNSETTLED)
        # neighbors of one key count once
        if config.share_ordering != "key" and unsettled > waiting + locks + _READ_AT_ONCE:
            yield "the window has no bound", f"{unsettled} records are not settled, {waiting} may wait"
        if len(runs) > 2 * (waiting + locks) + _READ_AT_ONCE:
            yield "the state has no bound", f"{len(runs)} state batches"


def is_late(leader: SharePartition, clock: Clock) -> bool:
    """Whether something was to come up, or to be given up, and has not."""
    engine = leader.engine
    if engine is None:
        return False
    due_ms, wall_ms = engine.next_time_ms, engine.next_wall_ms
    if due_ms is not None and due_ms < clock.monotonic_ms():
        return True
    late_ms = _MINUTE_MS if getattr(clock, "jumped", False) else 0
    return wall_ms is not None and 0 < wall_ms < clock.now_ms() - late_ms
