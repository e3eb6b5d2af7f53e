"""Start offsets and lags, as they are described, against what is known of share partitions and logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from tests.simulation.leases import SharePartition
from tests.simulation.ledger import Ledger, transaction_of
from tests.simulation.story import Story

Key = tuple[str, UUID, int]
Known = tuple[frozenset[int], frozenset[int], int]
"""Records that were in the log, settled ones, and how often the share partition was begun anew."""


class Lags:
    """Holds each description between what was so when asked and what may be so when answered.

    Args:
        high_watermark: where a log ends now; None while no broker tells.
    """

    def __init__(
        self,
        shares: Mapping[Key, SharePartition],
        ledger: Ledger,
        story: Story,
        high_watermark: Callable[[UUID, int], int | None],
    ) -> None:
        self._shares = shares
        self._ledger = ledger
        self._story = story
        self._high_watermark = high_watermark

    def asked(self, request: Any) -> dict[Key, Known]:
        """What is so now of the groups that somebody asks for."""
        groups = {group.group_id for group in request.groups}
        found: dict[Key, Known] = {}
        for key, share in self._shares.items():
            if key[0] in groups:
                log = self._ledger.log(*key[1:])
                there = (o for o in log.answered if transaction_of(log.values[o]) is None)
                settled = (o for o, entry in share.entries.items() if entry.settled)
                found[key] = frozenset(there), frozenset(settled), share.lives
        return found

    def described(self, key: Key, known: Mapping[Key, Known], start: int, lag: int) -> None:
        """A start offset and a lag were answered."""
        share, ledger = self._shares[key], self._ledger
        if ledger.harmed or share.suspended or key not in known or known[key][2] != share.lives:
            return
        if start < share.start_offset:
            text = f"{share.where}: from {share.start_offset} to {start}"
            self._story.broken("start offset went back", text)
        share.start_offset = max(start, share.start_offset)
        end = self._high_watermark(*key[1:])
        if start < 0 or end is None or ledger.names.get(key[1]) in ledger.compacted:
            return
        there, settled, _ = known[key]
        floor = max(start, ledger.log(*key[1:]).gone_below)
        low = sum(1 for offset in there if offset >= floor and not share.may_be_over(offset))
        high = max(0, end - start - sum(1 for offset in settled if offset >= start))
        if ledger.retained(ledger.names.get(key[1], "")):
            low = 0
        if not low <= lag <= high:
            text = f"{share.where}: {lag} from offset {start} on, {low} to {high} would be right"
            self._story.broken("lag", text)
