"""Order in a worker: it has one record of a key at work, however many of them it holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from sharecore._core import Record
from sharecore.client.workers.jobs import Job, State


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a group's records, as its settings say.

    Args:
        by_key: each key has an order of its own; otherwise each partition has one.
        header: the header whose value is the key; empty: the record's own key.
    """

    by_key: bool
    header: str = ""

    def lane_of(self, record: Record) -> Hashable:
        """Return what is equal for records that come one after another; None for a record without order."""
        place = record.topic, record.partition
        if not self.by_key:
            return place
        key = record.key
        if self.header:
            # the broker takes the last header of that name, too
            values = [value for name, value in record.headers if name == self.header]
            key = values[-1] if values else None
        return None if key is None else (*place, key)


class Lanes:
    """Queues of jobs: a job of a lane may be worked on when no other one of it is in front."""

    def __init__(self) -> None:
        self.order: Order | None = None
        self._lanes: dict[Hashable, deque[Job]] = {}

    @property
    def behind(self) -> list[Job]:
        """Jobs that are not in front of their lane."""
        return [job for lane in list(self._lanes.values()) for job in list(lane)[1:]]

    def enter(self, job: Job) -> bool:
        """Put a job at the end of its lane; return whether it is in front."""
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
        """Return the jobs of a job's lane that wait for their turn."""
        return [other for other in self._lanes.get(job.lane, ()) if other.state is State.BEHIND]

    def leave(self, job: Job) -> Job | None:
        """Take a job that has ended out of its lane; return the one whose turn it is now, if that changed."""
        lane = self._lanes.get(job.lane)
        if lane is None or job not in lane:
            return None
        was_front = lane[0] is job
        lane.remove(job)
        if not lane:
            del self._lanes[job.lane]
            return None
        return lane[0] if was_front else None
