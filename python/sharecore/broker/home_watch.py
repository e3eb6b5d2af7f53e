"""Reports on a home in a bucket, which answers wait for; ends the process when another broker leads."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from sharecore.broker.bucket_watch import BucketWatch

if TYPE_CHECKING:
    from sharecore._core import BucketStatus
    from sharecore.broker.last_leases import LastLeases
    from sharecore.storage import Storage

logger = logging.getLogger("sharecore.broker")

EXIT_STOPPED = 75
"""Exit status of a broker that may not lead (EX_TEMPFAIL): whoever supervises it may start it again."""
_LATE_MS = 2000
_SETTLE_S = 5.0


class HomeWatch(BucketWatch):
    """Logs when the bucket takes no writes, and ends the process when another broker leads.

    Args:
        url: the bucket.
        status: how the home stands.
        leave: ends the process at once: whoever leads now knows nothing of what is answered here.
    """

    def __init__(
        self, url: str, status: Callable[[], BucketStatus], leave: Callable[[int], object] = os._exit
    ) -> None:
        super().__init__(url, status)
        self._leave = leave

    def look(self) -> None:
        """Log what has changed since the last look; end the process if it may not lead."""
        status = self._status()
        if status.error and not self._failing:
            logger.error("%s takes no writes: %s. Answers wait for it", self.url, status.error)
            self._failing = True
        elif self._failing and not status.error:
            logger.warning("%s takes writes again", self.url)
            self._failing = False
        if status.state == self._state:
            return
        self._state = status.state
        if status.state == "leading":
            logger.info("this broker leads %s (epoch %d)", self.url, status.epoch)
        elif status.state != "attaching":
            logger.critical(
                "%s: %s. This broker ends; nothing that waited was answered", self.url, status.stopped
            )
            logging.shutdown()
            self._leave(EXIT_STOPPED)

    async def settle(self, storage: Storage, last_leases: LastLeases | None) -> None:
        """Note who holds leases, and wait until the bucket has what was written, but not for ever: it was not
        answered.
        """
        with suppress(asyncio.TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                if last_leases is not None:
                    await last_leases.end()
                newest = storage.tickets.newest
                if newest is not None:
                    # closing the store ends a wait that takes longer
                    await asyncio.to_thread(storage.store.wait, newest)
        storage.drain()

    def outage(self) -> str:
        """Return why writes are not answered; empty if they are."""
        status = self._status()
        if status.stopped:
            return f"{self.url}: {status.stopped}"
        if status.state == "attaching" or status.behind_ms > _LATE_MS:
            why = status.error or "no answer"
            return f"{self.url} takes no writes for {status.behind_ms // 1000} s: {why}"
        return ""

    def trouble(self) -> str:
        """Return why writes are not answered; empty if they are."""
        return self.outage()
