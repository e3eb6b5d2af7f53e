"""Waits for a slot that its owner gives up: the partition says so, and nobody else has to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sharecore.errors import KafkaError
from sharecore.tier.claims import holds_release
from sharecore.tier.slot_log import SlotLog
from sharecore.tier.sources import Fetching, Subscription
from sharecore.upstream import Fetched

logger = logging.getLogger(__name__)

_ROOM_BYTES = 1 << 20
_RETRY_S = 1.0


class Heir:
    """Of one slot.

    Args:
        log: the slot's partition, which is another node's.
        fetching: follows partitions.
    """

    def __init__(self, log: SlotLog, fetching: Callable[[], Fetching]) -> None:
        self._log = log
        self._fetching = fetching
        self._released = asyncio.Event()
        self._problem: KafkaError | None = None
        self._offset: int | None = None
        """From where there may be a release that was not seen yet."""
        self._subscription: Subscription | None = None

    async def released(self) -> None:
        """Waits for the next release, which may be void: whoever claims finds out."""
        while True:
            try:
                await self._follow()
            except (KafkaError, ValueError) as error:  # noqa: PERF203
                logger.info("%s is not followed now: %s", self._log.name, error)
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def _follow(self) -> None:
        if self._offset is None:
            # a release that was written already is the last record of all
            self._offset = await self._log.find_last()
        self._released.clear()
        self._problem = None
        fetching = self._fetching()
        following = fetching.subscribe(self._log.topic, self._log.index, self._offset, _ROOM_BYTES, self)
        self._subscription = following
        try:
            await self._released.wait()
        finally:
            self._subscription = None
            following.close()
        if self._problem is not None:
            self._offset = None
            raise self._problem

    def fetched(self, fetched: Fetched, /) -> None:
        """Takes what came; for whoever fetches."""
        self._offset = fetched.end
        if fetched.records and holds_release(fetched.records, self._log.name):
            self._released.set()
        elif self._subscription is not None:
            self._subscription.allow(_ROOM_BYTES)

    def failed(self, error: KafkaError, /) -> None:
        """The fetching has stopped; for whoever fetches."""
        self._problem = error
        self._released.set()
