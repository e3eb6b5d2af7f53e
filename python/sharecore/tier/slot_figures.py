"""Figures of a node's slots, for whoever looks after it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sharecore.metrics.durations import EDGES, Durations

if TYPE_CHECKING:
    from collections import Counter

    from sharecore.metrics.exposition import Sheet
    from sharecore.tier.lease import Lease
    from sharecore.tier.window import Budget

STATES = ("owned", "claiming", "awaited", "given_up")


class SlotFigures:
    """What was done with slots so far.

    Attributes:
        lost: slots that had to be given up at once.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._claims, self._hand_overs = Durations(), Durations()

    @staticmethod
    def now() -> float:
        """When something begins."""
        return asyncio.get_running_loop().time()

    def claimed(self, began: float) -> float:
        """A slot is led by this node; returns the seconds that took."""
        return self._add(self._claims, began)

    def handed_over(self, began: float) -> float:
        """A slot was given up for another node; returns the seconds that took."""
        return self._add(self._hand_overs, began)

    def _add(self, durations: Durations, began: float) -> float:
        seconds = self.now() - began
        durations.add(int(seconds * 1e9))
        return seconds

    def report(self, sheet: Sheet, slots: Counter[str], lease: Lease, budget: Budget, nodes: int) -> None:
        """Put all that is known of slots, `slots` by state, among the metrics."""
        # loaded where metrics are asked for
        from sharecore.metrics import families as f

        for state in STATES:
            sheet.add(f.TIER_SLOTS, slots[state], state)
        for family, times in ((f.TIER_CLAIM_TIME, self._claims), (f.TIER_HAND_OVER_TIME, self._hand_overs)):
            sheet.histogram(family, EDGES, times.buckets, times.total_ns / 1e9)
        for family, value in (
            (f.TIER_NODES, nodes),
            (f.TIER_LOST, self.lost),
            (f.TIER_LEASE, max(lease.left_ms, 0) / 1000),
            (f.TIER_FETCHED, budget.taken),
            (f.TIER_CACHE, budget.used),
        ):
            sheet.add(family, value)
