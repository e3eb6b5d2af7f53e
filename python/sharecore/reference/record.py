"""An in-flight record, and its originally acquired batch."""

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
    """When an extended lock originally began."""
    lock_ran_out: bool = False
    """The deadline passed during a pending write of this record."""
    before: int | None = None
    """The state to restore after a failed write; set during a pending write."""
    waits_until_ms: int | None = None
    """The earliest redelivery of the available record; see `ManagedPartition`."""
    unseen: bool = False
    """The record has not been examined yet; see `AdmittingPartition`, also for the next five."""
    not_before_ms: int | None = None
    """Its delivery time, until then."""
    expires_ms: int | None = None
    has_expired: bool = False
    digest: int = 0
    """Digest of its key; 0 without a key."""
    is_behind: bool = False
    """It waits for earlier records of its key."""
    rejected: bool = False
    """The pending write rejects the record, and a dead letter is due."""

    @property
    def settled(self) -> bool:
        """Whether its state is final."""
        return self.before is None and self.state in (ACKNOWLEDGED, ARCHIVED)

    @property
    def acquirable(self) -> bool:
        return self.is_free and not (self.waits or self.is_behind)

    @property
    def waits(self) -> bool:
        """Whether it waits for a time, to be examined, or to be expired."""
        has_time = self.waits_until_ms is not None or self.not_before_ms is not None
        return self.unseen or self.has_expired or has_time

    @property
    def is_free(self) -> bool:
        """Whether the record is available, waiting or not."""
        return self.before is None and self.state == AVAILABLE

    def acquire(self, member: str, deadline_ms: int) -> None:
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member = member
        self.deadline_ms = deadline_ms
        self.kept_since_ms = None
        self.lock_ran_out = False

    def end_lock(self, state: int) -> None:
        """Leave ACQUIRED for `state` at once, without a rollback."""
        self.state = state
        self.member = ""
        self.deadline_ms = None
        self.waits_until_ms = None

    def begin(self, state: int) -> None:
        """Begin a transition to `state`, pending until its write ends; other changes are refused
        meanwhile.
        """
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
    """Offsets first to last that entered the window together.

    Slower delivery near the delivery limit delivers fractions of such a batch, so its bounds are state.
    """

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def offsets(self) -> range:
        return range(self.first, self.last + 1)


def coalesce(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Merge neighbors with equal state and delivery count; `batches` sorted by offset, without overlaps."""
    joined: list[StateBatch] = []
    for first, last, state, count in batches:
        if joined and joined[-1][1] + 1 == first and joined[-1][2:] == (state, count):
            joined[-1] = (joined[-1][0], last, state, count)
        else:
            joined.append((first, last, state, count))
    return joined


def combine(
    existing: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int = -1
) -> list[StateBatch]:
    """Return the state after a write: per offset, the highest delivery count wins, then the highest state.

    Args:
        existing: (first, last, state, delivery_count) as stored; may overlap.
        new: the same form, newly written.
        start_offset: offsets below it are dropped; -1 keeps them.

    Returns:
        Batches sorted by offset, neighbors with equal state and count merged.
    """
    winners: dict[int, tuple[int, int]] = {}
    for first, last, state, count in [*existing, *new]:
        for offset in range(max(first, start_offset), last + 1):
            winners[offset] = max(winners.get(offset, (-1, -1)), (count, state))
    return coalesce((o, o, winners[o][1], winners[o][0]) for o in sorted(winners))


@dataclass(frozen=True, slots=True)
class Write:
    """A write for the persister; ends with the partition's `commit` or `rollback`.

    Attributes:
        id: identifies the write in `commit` and `rollback`; increases within a partition.
        start_offset: the start offset before the operation.
        delivery_complete_count: terminal records from the start offset, including this write (KIP-1226).
    """

    id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]

    def batches(self) -> list[StateBatch]:
        """[(first, last, state, delivery_count)], sorted, neighbors with equal state merged."""
        return list(self.state_batches)
