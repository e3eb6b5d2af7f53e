"""Rewrites a partition of a coordinator's topic when most of it is out of date."""

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
"""Records of a partition before it is worth a look how many of them still count."""

_GROWTH = 3
_RETRY_S = 1.0


class Compactor:
    """Reads what is durable a little at a time, appends what still counts, and deletes what was read.

    What fails takes along what is behind it, so that nothing is deleted that was not written again.

    Args:
        staged: the partition, and what is on its way there.
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
        """Rewrite nothing more: the topic is gone."""
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
        # open transactions keep what they may yet change; a newer value that is tried again may be given up
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
            logger.warning("%s is not compacted now: %s", self._staged.name, error)
        self._limit = max(self._least, _GROWTH * (self._log.end_offset - before))
