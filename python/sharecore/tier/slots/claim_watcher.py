"""Watcher for claims of slots being handed over, which are visible before the group's next assignment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from sharecore.errors import KafkaError
from sharecore.tier.slots.claims import SlotHistory
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.slots.ownership import UNKNOWN, Ownership
from sharecore.tier.upstream.sources import Fetching, Subscription
from sharecore.upstream import NOT_ALLOWED, Fetched

logger = logging.getLogger("sharecore.tier")

_ROOM_BYTES = 1 << 18
_BACK_RECORDS = 50
"""Number of recent records read first: the claim may be among them already."""

Claimed = Callable[[int, Ownership], object]


class ClaimWatcher:
    """Follow slots that another node is about to claim.

    Without it, the releasing node would redirect clients too soon, and other nodes would redirect them to the
    former owner until the next rebalance. Correctness does not depend on it: a missed claim is learned from
    the rebalance.

    Args:
        logs: logs of all slots, by number.
        fetching: follows their partitions.
        claimed: called with a slot and its new owner.
    """

    def __init__(self, logs: Sequence[SlotLog], fetching: Callable[[], Fetching], claimed: Claimed) -> None:
        self._logs, self._fetching, self._claimed = logs, fetching, claimed
        self._watched: dict[int, _Watched] = {}

    def watch(self, slots: Collection[int]) -> None:
        """Follow exactly these slots from now on."""
        for slot in self._watched.keys() - set(slots):
            self._watched.pop(slot).close()
        for slot in slots:
            if slot not in self._watched:
                self._watched[slot] = _Watched(self._logs[slot], self._fetching, self._claimed)


class _Watched:
    """One followed slot (`sources.Sink`)."""

    def __init__(self, log: SlotLog, fetching: Callable[[], Fetching], claimed: Claimed) -> None:
        self._log, self._fetching, self._claimed = log, fetching, claimed
        self._history = SlotHistory(log.name)
        self._last_reported = UNKNOWN
        self._subscription: Subscription | None = None
        self._task = asyncio.get_running_loop().create_task(self._begin(), name=f"watch {log.name}")

    async def _begin(self) -> None:
        try:
            offset = await self._log.find_recent(_BACK_RECORDS)
            self._subscription = self._fetching().subscribe(
                self._log.topic, self._log.index, offset, _ROOM_BYTES, self
            )
        except (KafkaError, ValueError) as error:
            self._unseen(error)

    def close(self) -> None:
        """Stop following."""
        self._task.cancel()
        if self._subscription is not None:
            self._subscription.close()

    def fetched(self, fetched: Fetched, /) -> None:
        """Process fetched records; called by the fetcher."""
        assert self._subscription is not None
        try:
            self._history.take(fetched.records)
        except ValueError as error:
            self._subscription.close()
            self._unseen(error)
            return
        self._subscription.allow(_ROOM_BYTES)
        claim = self._history.claim
        if claim is not None and self._last_reported != (claim.node_id, claim.epoch):
            self._last_reported = Ownership(claim.node_id, claim.epoch)
            self._claimed(self._log.index, self._last_reported)

    def failed(self, error: KafkaError, /) -> None:
        """Handle the end of fetching; called by the fetcher."""
        self._unseen(error)

    def _unseen(self, error: Exception) -> None:
        """Log why the slot is not followed; retry later, unless a permission is missing."""
        is_refused = isinstance(error, KafkaError) and error.code in NOT_ALLOWED
        level = logging.WARNING if is_refused else logging.INFO
        logger.log(level, "cannot follow claims of %s: %s", self._log.name, error)
