"""Reports on the copy in a bucket: log lines, metrics, and lines for `doctor`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore.plural import counted
from sharecore.waiting import PeriodicLook

if TYPE_CHECKING:
    from sharecore._core import BucketStatus
    from sharecore.metrics.exposition import Exposition

logger = logging.getLogger("sharecore.broker")

_INTERVAL_MS = 1000
_LATE_MS = 60_000
"""A copy that is further behind is worth a word to who looks."""
STATES = ("attaching", "leading", "standby", "fenced", "refused")
_STOPPED = ("fenced", "refused")


class BucketWatch(PeriodicLook):
    """Logs once when the bucket cannot be reached, once when it can again, and when the copy has ended.

    Args:
        url: the bucket.
        status: how the copy stands.
    """

    _is_home = False

    def __init__(self, url: str, status: Callable[[], BucketStatus]) -> None:
        self.url = url
        self._status = status
        super().__init__(_INTERVAL_MS, "the look at the copy in the bucket")
        self._state = ""
        self._failing = False
        self._eviction_error: str | None = None

    def look(self) -> None:
        """Log what has changed since the last look."""
        status = self._status()
        if status.error and not self._failing:
            self._failing = True
            self._log_failure(status)
        elif self._failing and not status.error:
            self._failing = False
            self._log_recovery(status)
        if status.eviction_error not in (None, self._eviction_error):
            self._eviction_error = status.eviction_error
            logger.error(
                "cannot evict a segment or rewrite an evicted one: %s. Retrying after later checkpoints",
                status.eviction_error,
            )
        if status.state != self._state:
            self._state = status.state
            self._enter(status)

    def _log_failure(self, status: BucketStatus) -> None:
        logger.warning(
            "%s does not take the copy: %s. The broker serves on; what is not copied is lost with its disk",
            self.url,
            status.error,
        )

    def _log_recovery(self, status: BucketStatus) -> None:
        logger.warning("%s takes the copy again, %s behind", self.url, _amount(status))

    def _enter(self, status: BucketStatus) -> None:
        """Act on a new state."""
        if status.state in _STOPPED:
            logger.error("nothing more is copied to %s: %s", self.url, status.stopped)
        elif status.state == "leading":
            logger.info("a copy of everything goes to %s (epoch %d)", self.url, status.epoch)

    def trouble(self) -> str:
        """Return how far behind the copy is, and why; empty if it is as near as it should be."""
        status = self._status()
        if status.state in _STOPPED:
            return f"nothing is copied to {self.url}: {status.stopped}"
        if status.error or status.behind_ms > _LATE_MS:
            why = status.error or "more is written than the bucket takes"
            return f"the copy in {self.url} is {_amount(status)} behind: {why}"
        return ""

    def report(self, sheet: Exposition) -> None:
        """Put the figures of the copy among the metrics."""
        # loaded only if metrics are requested
        from sharecore.metrics import bucket_families as f

        status = self._status()
        _report_state(sheet, status.state)
        sheet.add(f.BUCKET_HOME, int(self._is_home))
        for family, value in (
            (f.BUCKET_BEHIND_TIME, status.behind_ms / 1000),
            (f.BUCKET_BEHIND, status.behind_bytes),
            (f.BUCKET_EPOCH, status.epoch),
            (f.BUCKET_PLACE, status.place),
            (f.BUCKET_SEGMENTS_WAITING, status.segments_waiting),
            (f.BUCKET_SURPLUS, status.surplus_bytes),
            (f.BUCKET_OBJECTS, status.objects),
            (f.BUCKET_COPIED, status.bytes),
            (f.BUCKET_SENT, status.sent_bytes),
            (f.BUCKET_FAILURES, status.failed),
            (f.BUCKET_LOCAL, status.local_bytes),
            (f.BUCKET_REMOTE, status.remote_bytes),
            (f.BUCKET_INTERNAL, status.internal_bytes),
            (f.BUCKET_EVICTED, status.evicted),
            (f.BUCKET_EVICTION_FAILURES, status.eviction_failed),
            (f.BUCKET_PIECES, status.pieces),
            (f.BUCKET_PIECE_BYTES, status.piece_bytes),
            (f.BUCKET_PIECE_TIME, status.piece_micros / 1e6),
            (f.BUCKET_PIECE_FAILURES, status.pieces_failed),
        ):
            sheet.add(family, value)
        for request, count in (
            ("create", status.creates),
            ("get", status.gets),
            ("list", status.lists),
            ("delete", status.deletes),
        ):
            sheet.add(f.BUCKET_REQUESTS, count, request)


def report_standby(sheet: Exposition, epoch: int, place: int, silent_ms: int) -> None:
    """Put the figures of a standby among the metrics.

    Args:
        epoch: in which the leader writes.
        place: the next place of the journal.
        silent_ms: how long the leader has written nothing.
    """
    from sharecore.metrics import bucket_families as f

    _report_state(sheet, "standby")
    sheet.add(f.BUCKET_HOME, 1)
    sheet.add(f.BUCKET_EPOCH, epoch)
    sheet.add(f.BUCKET_PLACE, place)
    sheet.add(f.BUCKET_SILENCE, silent_ms / 1000)


def _report_state(sheet: Exposition, found: str) -> None:
    from sharecore.metrics import bucket_families as f

    for state in STATES:
        sheet.add(f.BUCKET_STATE, int(state == found), state)


def _amount(status: BucketStatus) -> str:
    seconds = status.behind_ms // 1000
    return f"{counted(seconds, 'second')} and {status.behind_bytes / 1e6:.1f} MB"
