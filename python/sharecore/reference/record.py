"""One record in flight, and the batch it was first acquired with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

AVAILABLE = 0
ACQUIRED = 1
ACKNOWLEDGED = 2
ARCHIVING = 3
ARCHIVED = 4

StateBatch = tuple[int, int, int, int]
"""First offset, last offset, state, delivery count."""


@dataclass(slots=True)
class Record:
    """State of one offset (KIP-932, "In-flight records")."""

    state: int
    delivery_count: int
    member: str = ""
    deadline_ms: int | None = None
    kept_since_ms: int | None = None
    """When its lock began that was started anew, as its member is connected."""
    lock_ran_out: bool = False
    """The deadline passed while a write of this record was open."""
    before: int | None = None
    """The state that a failed write brings back; set while a write of this record is open."""
    waits_until_ms: int | None = None
    """The record is available and comes again no earlier; see `ManagedPartition`."""
    unseen: bool = False
    """The record has not been looked at yet; see `AdmittingPartition`. So the next five."""
    not_before_ms: int | None = None
    """Its delivery time, until that has come."""
    expires_ms: int | None = None
    has_expired: bool = False
    digest: int = 0
    """Stands for its key; 0: it has none."""
    is_behind: bool = False
    """It comes only after others of its key."""
    rejected: bool = False
    """The open write tells that a member rejected the record, and that a dead letter is due."""

    @property
    def settled(self) -> bool:
        """Whether nothing will happen to this record any more."""
        return self.before is None and self.state in (ACKNOWLEDGED, ARCHIVED)

    @property
    def acquirable(self) -> bool:
        return self.is_free and not (self.waits or self.is_behind)

    @property
    def waits(self) -> bool:
        """Whether it waits for a time, for being looked at, or for being given up."""
        has_time = self.waits_until_ms is not None or self.not_before_ms is not None
        return self.unseen or self.has_expired or has_time

    @property
    def is_free(self) -> bool:
        """Whether the record is available, whether it waits or not."""
        return self.before is None and self.state == AVAILABLE

    def acquire(self, member: str, deadline_ms: int) -> None:
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member = member
        self.deadline_ms = deadline_ms
        self.kept_since_ms = None
        self.lock_ran_out = False

    def end_lock(self, state: int) -> None:
        """Leave ACQUIRED for `state` at once, with nothing to come back to."""
        self.state = state
        self.member = ""
        self.deadline_ms = None
        self.waits_until_ms = None

    def begin(self, state: int) -> None:
        """Go to `state` until the write of it ends; everything else is refused meanwhile."""
        self.before = self.state
        self.state = state

    def commit(self) -> None:
        self.before = None
        self.member = ""
        self.deadline_ms = None

    def rollback(self) -> None:
        assert self.before is not None
        self.state = self.before
        self.before = None
        self.rejected = False


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """Offsets first to last that came into flight together.

    Slower delivery near the delivery limit hands out fractions of such a batch, so its edges are state.
    """

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def offsets(self) -> range:
        return range(self.first, self.last + 1)


def coalesce(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Join neighbours of equal state and delivery count; `batches` sorted by offset, not overlapping."""
    joined: list[StateBatch] = []
    for first, last, state, count in batches:
        if joined and joined[-1][1] + 1 == first and joined[-1][2:] == (state, count):
            joined[-1] = (joined[-1][0], last, state, count)
        else:
            joined.append((first, last, state, count))
    return joined
