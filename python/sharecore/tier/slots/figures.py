"""Metrics of a node's slots."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sharecore.metrics.durations import EDGES, Durations

if TYPE_CHECKING:
    from collections import Counter

    from sharecore.metrics.exposition import Exposition
    from sharecore.tier.slots.lease import Lease
    from sharecore.tier.upstream.window import Budget

STATES = ("owned", "claiming", "awaited", "given_up")


class SlotFigures:
    """Metrics of claims and handovers.

    Attributes:
        lost: number of slots lost without a handover.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._claims, self._hand_overs = Durations(), Durations()

    @staticmethod
    def now() -> float:
        """Return the current time, as the start of a measurement."""
        return asyncio.get_running_loop().time()

    def claimed(self, began: float) -> float:
        """Count a claim; return its duration in seconds."""
        return self._add(self._claims, began)

    def handed_over(self, began: float) -> float:
        """Count a handover; return its duration in seconds."""
        return self._add(self._hand_overs, began)

    def _add(self, durations: Durations, began: float) -> float:
        seconds = self.now() - began
        durations.add(int(seconds * 1e9))
        return seconds

    def report(
        self, sheet: Exposition, slots: Counter[str], lease: Lease, budget: Budget, nodes: int
    ) -> None:
        """Add the metrics of slots; `slots` is their number by state."""
        # loaded only if metrics are requested
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
