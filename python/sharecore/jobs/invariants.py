"""What must hold from one state record of a share partition to the next.

Sources: KIP-932, "Share-partition state" and "Managing durable share-partition state"; what Apache Kafka
4.3.1 and sharecore write. Delivery counts in records never fall within a state epoch: an acquisition is not
written, and giving records back, also when a session closes, writes the count that they were acquired with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sharecore.jobs.changes import (
    ACQUIRED,
    SNAPSHOT,
    STATES,
    TERMINAL,
    TOMBSTONE,
    UNKNOWN,
    UPDATE,
    Change,
    StateBatch,
)
from sharecore.spark.ranges import Ranges

ERROR, WARNING = "error", "warning"


class Finding(NamedTuple):
    """Something that must not be, and the record of the state topic that shows it."""

    severity: str
    rule: str
    partition: int
    offset: int
    explanation: str


class _State:
    """What the records so far add up to. `ranges` have state and delivery count in one number."""

    def __init__(self) -> None:
        self.snapshot_epoch = self.state_epoch = self.leader_epoch = 0
        self.start_offset = UNKNOWN
        self.complete = UNKNOWN
        self.ranges = Ranges()

    def take(self, change: Change) -> None:
        if change.kind == SNAPSHOT:
            self.snapshot_epoch = change.snapshot_epoch or 0
            self.state_epoch = change.state_epoch or 0
            self.leader_epoch = change.leader_epoch or 0
            self.start_offset = UNKNOWN if change.start_offset is None else change.start_offset
            self.ranges = Ranges()
        else:
            self.leader_epoch = max(self.leader_epoch, change.leader_epoch or 0)
            if change.start_offset is not None and change.start_offset != UNKNOWN:
                self.start_offset = change.start_offset
        for first, last, state, count in change.batches:
            if first <= last:
                _merge(self.ranges, first, last, pack(state, count))
        if self.start_offset > 0:
            self.ranges.cut(0, self.start_offset - 1)


def _merge(ranges: Ranges, first: int, last: int, number: int) -> None:
    """Merge a range: the highest delivery count wins, then the highest state, as in the coordinator."""
    kept = [each for each in ranges.overlap(first, last) if each[2] > number]
    ranges.put(first, last, number)
    for each in kept:
        ranges.put(*each)


def pack(state: int, count: int) -> int:
    """State and delivery count as one number, which orders them as the share coordinator does."""
    return count << 8 | state


def audit(changes: Iterable[Change]) -> Iterator[Finding]:
    """Yield violations in the history of one share partition, in offset order.

    Records that a later snapshot made redundant may be gone: the history begins where it begins.
    """
    state: _State | None = None
    for change in changes:
        said: list[Said] = []
        if change.error is not None or change.kind not in (SNAPSHOT, UPDATE, TOMBSTONE):
            said = [(ERROR, "unreadable", change.error or f"a record of type {change.kind}")]
        elif change.kind == TOMBSTONE:
            state = None
        elif change.kind == UPDATE and state is None:
            said = [(WARNING, "update without snapshot", "a coordinator passes over an update without one")]
        else:
            said += _own(change)
            if state is None:
                state = _State()
            else:
                said += _epochs(state, change)
                if change.state_epoch is None or change.state_epoch <= state.state_epoch:
                    said += _follows(state, change)
            state.take(change)
            said += _count(state, change)
        for severity, rule, explanation in said:
            yield Finding(severity, rule, change.partition, change.offset, explanation)


Said = tuple[str, str, str]


def _own(change: Change) -> Iterator[Said]:
    """Yield violations of a single record."""
    before = UNKNOWN
    start = UNKNOWN if change.start_offset is None else change.start_offset
    for first, last, state, count in change.batches:
        text = f"{first} to {last}"
        if first > last or first < 0:
            yield ERROR, "impossible batch", f"batch {text}"
        elif first <= before:
            yield ERROR, "batches overlap", f"batch {text} begins at or before {before}, where another ends"
        if last < start:
            yield ERROR, "batch below start offset", f"batch {text} lies below the start offset {start}"
        if state == ACQUIRED or not 0 <= state < len(STATES):
            yield (
                ERROR,
                "impossible state",
                f"batch {text} has delivery state {state}, which is never written",
            )
        if count < 0:
            yield ERROR, "impossible batch", f"batch {text} was delivered {count} times"
        before = max(before, last)


def _epochs(state: _State, change: Change) -> Iterator[Said]:
    epoch = change.snapshot_epoch or 0
    if change.kind == UPDATE:
        if epoch != state.snapshot_epoch:
            yield (
                ERROR,
                "snapshot epoch of an update",
                f"the update belongs to snapshot {epoch}, the last one is {state.snapshot_epoch}",
            )
    elif epoch <= state.snapshot_epoch:
        yield (
            ERROR,
            "snapshot epoch",
            f"snapshot {epoch} comes after {state.snapshot_epoch}: it has to grow",
        )
    elif epoch > state.snapshot_epoch + 1:
        yield (
            WARNING,
            "snapshot epoch",
            f"snapshot {epoch} comes after {state.snapshot_epoch}: one is missing",
        )
    if change.state_epoch is not None and change.state_epoch < state.state_epoch:
        yield ERROR, "state epoch", f"{change.state_epoch} after {state.state_epoch}: it never falls"
    same = change.state_epoch is None or change.state_epoch == state.state_epoch
    if same and (change.leader_epoch or 0) < state.leader_epoch:
        yield (
            ERROR,
            "leader epoch",
            f"{change.leader_epoch} after {state.leader_epoch}: a fenced leader wrote",
        )


def _follows(state: _State, change: Change) -> Iterator[Said]:
    """Yield violations of a record after the earlier ones of its state epoch.

    A snapshot that is due takes the place of an update, so it may hold one write more than what came before.
    """
    start = UNKNOWN if change.start_offset is None else change.start_offset
    if start == UNKNOWN and change.kind == UPDATE:
        start = state.start_offset
    if start < state.start_offset:
        yield (
            ERROR,
            "start offset goes back",
            f"{start} after {state.start_offset}, without a new state epoch",
        )
    for first, last, kind, count in change.batches:
        for low, high, number in state.ranges.overlap(first, last):
            yield from _transition(low, high, number & 0xFF, number >> 8, kind, count)
    if change.kind == SNAPSHOT:
        held = Ranges((first, last, 0) for first, last, _, _ in change.batches if first <= last)
        for low, high, number in state.ranges:
            for first, last in held.missing(max(low, start), high):
                if first <= last:
                    yield (
                        ERROR,
                        "snapshot forgets",
                        f"{first} to {last} were {STATES[number & 0xFF]} and are not in the snapshot",
                    )


def _transition(low: int, high: int, before: int, delivered: int, state: int, count: int) -> Iterator[Said]:
    text = f"{low} to {high}" if low < high else str(low)
    if before in TERMINAL and state != before and 0 <= state < len(STATES):
        yield (
            ERROR,
            "settled record changes",
            f"{text} were {STATES[before]} and are {STATES[state]}: a settled record stays so",
        )
    elif count < delivered:
        yield ERROR, "delivery count falls", f"{text} had {delivered} deliveries and have {count}"


def _count(state: _State, change: Change) -> Iterator[Said]:
    """Yield the delivery-complete count (KIP-1226), from which lag is reckoned."""
    stated = change.delivery_complete_count
    if stated is None or stated == UNKNOWN or state.start_offset == UNKNOWN:
        return
    settled = settled_from(state.start_offset, unpacked(state.ranges))
    if stated != settled:
        yield (
            WARNING,
            "delivery-complete count",
            f"{stated} are said to be settled from {state.start_offset} on, the batches have {settled}",
        )


def unpacked(ranges: Ranges) -> Iterator[StateBatch]:
    """Return the state batches that `pack` packed."""
    for first, last, number in ranges:
        yield first, last, number & 0xFF, number >> 8


def settled_from(start: int, batches: Iterable[StateBatch]) -> int:
    """How many offsets from `start` on are settled."""
    return sum(
        last - max(first, start) + 1
        for first, last, state, _ in batches
        if state in TERMINAL and last >= start
    )
