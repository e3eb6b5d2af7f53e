"""Deletion of a slot's obsolete records, after rewriting those that pin them."""

from __future__ import annotations

import logging

from sharecore.clock import Clock
from sharecore.coordinator_log.staged_log import cut
from sharecore.errors import KafkaError
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.slots.views import GroupView, StateView

logger = logging.getLogger("sharecore.tier")

LEAST_RECORDS = 20_000
"""Number of records before a slot is checked for obsolete ones."""


class Upkeep:
    """Maintenance of one slot.

    Args:
        least: see `LEAST_RECORDS`.
    """

    def __init__(
        self, slot: SlotLog, state: StateView, groups: GroupView, clock: Clock, *, least: int = LEAST_RECORDS
    ) -> None:
        self._slot, self._state, self._groups = slot, state, groups
        self._clock = clock
        self._least = least

    async def look(self) -> None:
        """Delete obsolete records once there are enough; the coordinator rewrites old share state."""
        slot = self._slot
        if not slot.owned:
            return
        try:
            if slot.high_watermark - slot.claims[-1] >= self._least:
                await slot.renew_claim()
            needed = self._state.keep_from
            until = slot.high_watermark if needed is None else needed
            if until - slot.start_offset >= self._least + len(self._groups):
                for records in cut(old) if (old := self._groups.older_than(until)) else ():
                    await self._groups.append_local(records, now_ms=self._clock.now_ms()).ticket
                kept = self._groups.keep_from
                await slot.delete_before(until if kept is None else min(until, kept))
        except KafkaError as error:
            logger.warning("%s: cannot delete old records now: %s", slot.name, error)
