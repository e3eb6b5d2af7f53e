"""Start offsets and lags, as they are described, against what is known of share partitions and logs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any
from uuid import UUID

from tests.simulation.leases import REJECTED, SharePartition
from tests.simulation.ledger import Ledger, transaction_of
from tests.simulation.story import Story

Key = tuple[str, UUID, int]
Known = tuple[set[int], set[int], int]
"""From the start offset on, records in the log and settled ones; how often it was begun anew."""


class Lags:
    """Holds each description between what was so when asked and what may be so when answered.

    Args:
        extent: where a log begins and ends now; None while no broker tells.

    Attributes:
        lettered: groups whose rejected records lag until their letters are written.
    """

    def __init__(
        self,
        shares: Mapping[Key, SharePartition],
        ledger: Ledger,
        story: Story,
        extent: Callable[[UUID, int], tuple[int, int] | None],
    ) -> None:
        self._shares = shares
        self._ledger = ledger
        self._story = story
        self._extent = extent
        self.lettered: set[str] = set()

    def _first_from(self, key: Key, offset: int, given: Collection[int]) -> int:
        """The first offset from one on that may hold a record that was not given out.

        A start offset passes what holds none, and what was settled.
        """
        ledger, log = self._ledger, self._ledger.log(*key[1:])
        name, floor = ledger.names.get(key[1], ""), max(offset, log.gone_below)
        if name in ledger.compacted or ledger.retained(name):
            # older ones may have vanished: a leader passes them as it begins, or as it gives out later ones
            extent = self._extent(*key[1:])
            floor = max([floor, *(offset + 1 for offset in given), *(extent or ())[:1]])
        there = [each for each in log.values if each >= floor and each not in given]
        return min(there, default=log.end)

    def asked(self, request: Any) -> dict[Key, Known]:
        """What is so now of the groups that somebody asks for."""
        groups = {group.group_id for group in request.groups}
        found: dict[Key, Known] = {}
        for key, share in self._shares.items():
            if key[0] in groups:
                log = self._ledger.log(*key[1:])
                # the reported range does not start earlier
                ahead = range(max(0, share.start_offset), log.end)
                there = {o for o in ahead if o in log.answered and transaction_of(log.values[o]) is None}
                late = REJECTED if key[0] in self.lettered else ""
                settled = {
                    o for o in ahead if o in share.entries and share.entries[o].settled not in ("", late)
                }
                found[key] = there, settled, share.lives
        return found

    def described(self, key: Key, known: Mapping[Key, Known], start: int, lag: int) -> None:
        """A start offset and a lag were answered."""
        share, ledger = self._shares[key], self._ledger
        if ledger.harmed or share.unsure or key not in known or known[key][2] != share.lives:
            return
        if start < share.start_offset and not share.start_may_fall:
            text = f"{share.where}: from {share.start_offset} to {start}"
            self._story.broken("start offset went back", text)
        given = share.given_meanwhile or ()
        if share.set_to is not None and start > self._first_from(key, share.set_to, given):
            text = f"{share.where}: set to {share.set_to}, {start} is told"
            self._story.broken("start offset that was set", text)
        share.start_offset = start if share.start_may_fall else max(start, share.start_offset)
        extent = self._extent(*key[1:])
        if start < 0 or extent is None or ledger.names.get(key[1]) in ledger.compacted:
            return
        there, settled, _ = known[key]
        floor = max(start, ledger.log(*key[1:]).gone_below)
        low = sum(1 for offset in there if offset >= floor and not share.may_be_over(offset))
        # nothing is written for deleted records any more, though they may be finished
        begin, end = extent
        high = max(0, end - start - sum(1 for offset in settled if offset >= max(start, begin)))
        if ledger.retained(ledger.names.get(key[1], "")):
            low = 0
        if not low <= lag <= high and not share.may_count_undone:
            text = f"{share.where}: {lag} from offset {start} on, {low} to {high} would be right"
            self._story.broken("lag", text)
