"""Failing jobs that block others are given up early while the others succeed."""

from __future__ import annotations

from sharecore._core import Record
from sharecore.client.workers.jobs import Job

_WINDOW_USED_MAX = 0.5
_SUCCESSES_MIN = 10
_SUCCESSES_A_FAILURE = 10
_SHARE_AT_THE_BOUND = 10


class Obstacles:
    """Jobs waiting for a retry, and which of them block other jobs.

    A share partition has a bounded window of in-flight records that starts at its oldest unacknowledged
    record: a job that keeps failing stops the partition once the window is full. Likewise, nothing is fetched
    while too many jobs wait. In either case, jobs that fail while the others succeed are themselves at fault,
    and end early. If the others fail too, it is an outage, and every job waits for its end.

    Args:
        waiting_max: the number of waiting jobs at which fetching stops.
    """

    CHECK_SECONDS = 0.25

    def __init__(self, waiting_max: int) -> None:
        self.waiting: dict[Job, None] = {}
        self.window = 0
        """The in-flight limit of a share partition; 0 if unknown."""
        self._waiting_max = waiting_max
        self._newest: dict[tuple[str, int], int] = {}
        self._succeeded = self._failed = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit of waiting jobs is reached."""
        return len(self.waiting) >= self._waiting_max

    def seen(self, record: Record) -> None:
        """Record the progress of a share partition."""
        key = record.topic, record.partition
        if record.offset > self._newest.get(key, -1):
            self._newest[key] = record.offset

    def succeeded(self, _: Job) -> None:
        self._succeeded += 1

    def failed(self, job: Job) -> None:
        """Record a failed attempt."""
        if job.attempts == 1:
            self._failed += 1
            job.others = self._succeeded, self._failed

    def find(self) -> list[Job]:
        """Return jobs that block others which succeed."""
        most = max(1, len(self.waiting) // _SHARE_AT_THE_BOUND) if self.is_full else 0
        found: list[Job] = []
        # in the order of their first failure: a retried job is queued behind the others
        for job in sorted(self.waiting, key=lambda job: job.failed_at):
            if not self._others_succeed(job):
                continue
            if self._fills_window(job.record) or len(found) < most:
                found.append(job)
        return found

    def _others_succeed(self, job: Job) -> bool:
        succeeded, failed = self._succeeded - job.others[0], self._failed - job.others[1]
        return succeeded >= max(_SUCCESSES_MIN, _SUCCESSES_A_FAILURE * failed)

    def _fills_window(self, record: Record) -> bool:
        newest = self._newest[record.topic, record.partition]
        return 0 < self.window * _WINDOW_USED_MAX <= newest - record.offset
