"""Reports on a home in a bucket, which answers wait for; ends the process when another broker leads."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sharecore.broker.store.bucket_watch import BucketWatch
from sharecore.waiting import PeriodicLook

if TYPE_CHECKING:
    from sharecore._core import BucketStatus
    from sharecore.broker.store.last_leases import LastLeases
    from sharecore.partition import SharePartitions
    from sharecore.storage import Storage

logger = logging.getLogger("sharecore.broker")

EXIT_STOPPED = 75
"""Exit status of a broker that may not lead (EX_TEMPFAIL): whoever supervises it may start it again."""
_LATE_MS = 2000
_SETTLE_S = 5.0
LEASE_MS = 5000
"""A standby waits for 6.5 s of silence; the look comes `_LEASE_LOOK_MS` later at most."""
_LEASE_LOOK_MS = 250
_PART = 1
"""Of what rests; `LastLeases` has 0."""


def fenced_mark(data_dir: Path) -> Path:
    """Return the file that says that this broker was fenced, and has not led since."""
    return data_dir / "bucket.fenced"


class Lease(PeriodicLook):
    """Has nothing leased while another broker may lead.

    Leases are written nowhere, so time alone keeps two brokers from leasing one record.

    Args:
        may_lease: whether no other broker can lead now.
        partitions: what leases.
    """

    def __init__(self, may_lease: Callable[[], bool], partitions: SharePartitions) -> None:
        self._may_lease = may_lease
        self._partitions = partitions
        self._rests = False
        super().__init__(_LEASE_LOOK_MS, "the look at the lease of the home")

    def start(self) -> None:
        """Look at once, and start to look."""
        self.look()
        super().start()

    def look(self) -> None:
        """Stop leasing, or lease again."""
        rests = not self._may_lease()
        if rests and not self._rests:
            logger.warning("the bucket has not answered for %d s: no records are leased", LEASE_MS // 1000)
            self._partitions.rest(_PART, lambda topic_id, partition: True)
        elif self._rests and not rests:
            self._partitions.resume(_PART)
        self._rests = rests


class HomeWatch(BucketWatch):
    """Logs when the bucket takes no writes, and ends the process when another broker leads.

    Args:
        url: the bucket.
        status: how the home stands.
        fenced: the file to make if another broker has taken the home.
        leave: ends the process at once: whoever leads now knows nothing of what is answered here.
    """

    _is_home = True

    def __init__(
        self,
        url: str,
        status: Callable[[], BucketStatus],
        fenced: Path,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        super().__init__(url, status)
        self._fenced = fenced
        self._leave = leave

    def _log_failure(self, status: BucketStatus) -> None:
        logger.error("%s takes no writes: %s. Answers wait for it", self.url, status.error)

    def _log_recovery(self, status: BucketStatus) -> None:
        logger.warning("%s takes writes again", self.url)

    def _enter(self, status: BucketStatus) -> None:
        """Log a new state; end the process if it may not lead."""
        if status.state == "leading":
            logger.info("this broker leads %s (epoch %d)", self.url, status.epoch)
        elif status.state != "attaching":
            logger.critical(
                "%s: %s. This broker ends; nothing that waited was answered", self.url, status.stopped
            )
            if status.state == "fenced":
                with suppress(OSError):
                    self._fenced.touch()
            logging.shutdown()
            self._leave(EXIT_STOPPED)

    async def settle(self, storage: Storage, last_leases: LastLeases | None) -> None:
        """Note the owners of leases, and wait a limited time until the bucket has the note."""
        with suppress(asyncio.TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                if last_leases is not None:
                    await last_leases.end()
                newest = storage.tickets.newest
                if newest is not None:
                    # closing the store ends longer waits
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
