"""Order within a worker: one record of a key is processed at a time, however many are held."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from sharecore._core import Record
from sharecore.client.workers.jobs import Job, State


@dataclass(frozen=True, slots=True)
class Order:
    """The order in a group's settings.

    Args:
        by_key: each key has its own order; otherwise each partition has one.
        header: the header with the key; empty: the record's own key.
    """

    by_key: bool
    header: str = ""

    def lane_of(self, record: Record) -> Hashable:
        """Return a value that is equal for records in one order; None for an unordered record."""
        place = record.topic, record.partition
        if not self.by_key:
            return place
        key = record.key
        if self.header:
            # like the broker, use the last header with this name
            values = [value for name, value in record.headers if name == self.header]
            key = values[-1] if values else None
        return None if key is None else (*place, key)


class Lanes:
    """Queues of jobs: only the first job of a lane may be processed."""

    def __init__(self) -> None:
        self.order: Order | None = None
        self._lanes: dict[Hashable, deque[Job]] = {}

    @property
    def behind(self) -> list[Job]:
        """The number of jobs that are not first in their lane."""
        return [job for lane in list(self._lanes.values()) for job in list(lane)[1:]]

    def enter(self, job: Job) -> bool:
        """Add a job at the end of its lane; return whether it is first."""
        job.lane = None if self.order is None else self.order.lane_of(job.record)
        if job.lane is None:
            return True
        lane = self._lanes.setdefault(job.lane, deque())
        lane.append(job)
        if lane[0] is job:
            return True
        job.state = State.BEHIND
        return False

    def rest(self, job: Job) -> list[Job]:
        """Return the waiting jobs of a job's lane."""
        return [other for other in self._lanes.get(job.lane, ()) if other.state is State.BEHIND]

    def leave(self, job: Job) -> Job | None:
        """Remove an ended job from its lane; return the job that became first, if any."""
        lane = self._lanes.get(job.lane)
        if lane is None or job not in lane:
            return None
        was_front = lane[0] is job
        lane.remove(job)
        if not lane:
            del self._lanes[job.lane]
            return None
        return lane[0] if was_front else None
