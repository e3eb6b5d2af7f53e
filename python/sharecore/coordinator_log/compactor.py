"""Rewrites a partition of a coordinator topic when most of it is obsolete."""

from __future__ import annotations

import logging
import sys

from sharecore.clock import Clock
from sharecore.coordinator_log.compaction import Compaction
from sharecore.coordinator_log.staged_log import StagedLog, cut
from sharecore.errors import KafkaError
from sharecore.waiting import Timers

logger = logging.getLogger(__name__)

COMPACT_RECORDS = 20_000
"""Records of a partition before it is checked for obsolete records."""

_GROWTH = 3
_RETRY_S = 1.0


class Compactor:
    """Read durable records in small steps, append the current ones again, and delete the old ones.

    A failed write also fails the writes behind it, so that nothing is deleted before it is written again.

    Args:
        staged: the partition and its pending writes.
        compact_records: see `COMPACT_RECORDS`.
    """

    def __init__(
        self, staged: StagedLog, clock: Clock, timers: Timers, *, compact_records: int = COMPACT_RECORDS
    ) -> None:
        self._staged = staged
        self._log = staged.log
        self._clock = clock
        self._timers = timers
        self._least = self._limit = compact_records
        self._compaction: Compaction | None = None

    def look(self) -> None:
        """Start to rewrite the partition if it has grown enough."""
        if self._compaction is None and self._log.end_offset - self._log.start_offset > self._limit:
            self._compaction = Compaction(self._log)
            self._timers.call_soon(self._go_on)

    def stop(self) -> None:
        """Stop compaction: the topic is gone."""
        self._compaction = None
        self._limit = sys.maxsize

    def _go_on(self) -> None:
        compaction = self._compaction
        if compaction is None:
            return
        if compaction.read_some():
            self._timers.call_soon(self._go_on)
            return
        before = compaction.redundant_before(
            self._log.last_stable_offset, self._staged.keys_under_way(in_transactions=True)
        )
        # an open transaction keeps the values that it may change; a newer value that is retried may be
        # abandoned
        is_worth_it = 2 * (before - self._log.start_offset) > compaction.end - self._log.start_offset
        if self._staged.failing or not is_worth_it:
            self._timers.call_later(_RETRY_S, self._go_on)
            return
        self._compaction = None
        newer = self._staged.keys_under_way(in_transactions=False)
        live = [(key, value) for key, value in compaction.live(before) if key not in newer]
        try:
            for some in cut(live) if live else ():
                self._log.append_local(some, now_ms=self._clock.now_ms())
            self._log.delete_records(before)
        except KafkaError as error:
            logger.warning("cannot compact %s now: %s", self._staged.name, error)
        self._limit = max(self._least, _GROWTH * (self._log.end_offset - before))
