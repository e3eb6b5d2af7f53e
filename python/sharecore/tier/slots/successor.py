"""The next owner of a slot, which waits for the current owner's release record."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from sharecore.errors import KafkaError
from sharecore.tier.slots.log import Read, SlotLog
from sharecore.tier.upstream.sources import Fetching
from sharecore.upstream import NOT_ALLOWED, Fetched, Trouble

logger = logging.getLogger("sharecore.tier")

_ROOM_BYTES = 1 << 20
_RETRY_S = 1.0


class Successor:
    """The next owner of one slot. It reads the partition in advance, so that only the claim remains.

    One subscription fetches all records, and checks with each new partition leader that none was lost; if any
    was, everything is read again.

    Args:
        log: the slot's partition, owned by another node.
        fetching: follows partitions.
    """

    def __init__(self, log: SlotLog, fetching: Callable[[], Fetching]) -> None:
        self._log = log
        self._fetching = fetching
        self._trouble = Trouble(logger, f"{log.name} cannot be followed")

    async def released(self, epoch: int) -> Read:
        """Wait until the owner before a claim's epoch releases the slot for this node.

        Returns:
            The records of the partition.
        """
        while True:
            try:
                return await self._follow(epoch)
            except (KafkaError, ValueError) as error:  # noqa: PERF203
                if isinstance(error, KafkaError) and error.code in NOT_ALLOWED:
                    self._trouble.goes_on(error)
                else:
                    logger.info("cannot follow %s, retrying: %s", self._log.name, error)
                await asyncio.sleep(_RETRY_S)

    async def _follow(self, epoch: int) -> Read:
        renewing = asyncio.ensure_future(self._log.renew_producer())
        try:
            read = Read(self._log.name, await self._log.find_start())
            with _Following(self._log, read, epoch, self._fetching()) as following:
                await following.given
            with contextlib.suppress(KafkaError):  # the claim will request a producer
                read.producer = await renewing
            return read
        finally:
            renewing.cancel()


class _Following:
    """A followed partition (`sources.Sink`).

    Attributes:
        given: completes once the slot is released, or with the error that ended following.
    """

    def __init__(self, log: SlotLog, read: Read, epoch: int, fetching: Fetching) -> None:
        self.given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log, self._read, self._epoch = log, read, epoch
        self._subscription = fetching.subscribe(log.topic, log.index, read.end, _ROOM_BYTES, self)

    def __enter__(self) -> _Following:
        return self

    def __exit__(self, *_: object) -> None:
        self._subscription.close()

    def fetched(self, fetched: Fetched, /) -> None:
        """Process fetched records; called by the fetcher."""
        if self.given.done():
            return
        try:
            self._read.take(fetched.records)
        except ValueError as error:
            self.given.set_exception(error)
            return
        if self._log.is_given(self._read, self._epoch):
            self.given.set_result(None)
        else:
            self._subscription.allow(_ROOM_BYTES)

    def failed(self, error: KafkaError, /) -> None:
        """Handle the end of fetching; called by the fetcher."""
        if not self.given.done():
            self.given.set_exception(error)
