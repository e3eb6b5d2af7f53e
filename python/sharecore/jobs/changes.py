"""Records of `__share_group_state` as the jobs take them: rows of `format("sharestate")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
TERMINAL = frozenset({ACKNOWLEDGED, ARCHIVED})
STATES = ("available", "acquired", "acknowledged", "archiving", "archived")
SNAPSHOT, UPDATE, TOMBSTONE, LIVE = "snapshot", "update", "tombstone", "live"
UNKNOWN = -1
"""Start offset or delivery-complete count that is not known."""

StateBatch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""


class Change(NamedTuple):
    """One record about a share partition; fields that updates or tombstones lack are None.

    Args:
        partition, offset: of the state topic.
        kind: snapshot, update, tombstone, or what cannot be read.
        error: why it cannot be read.
    """

    partition: int
    offset: int
    kind: str
    snapshot_epoch: int | None = None
    state_epoch: int | None = None
    leader_epoch: int | None = None
    start_offset: int | None = None
    delivery_complete_count: int | None = None
    batches: Sequence[StateBatch] = ()
    error: str | None = None


COLUMNS = {
    "partition": "partition",
    "offset": "offset",
    "type": "kind",
    "snapshotEpoch": "snapshot_epoch",
    "stateEpoch": "state_epoch",
    "leaderEpoch": "leader_epoch",
    "startOffset": "start_offset",
    "deliveryCompleteCount": "delivery_complete_count",
    "stateBatches": "batches",
    "error": "error",
}
"""The source's columns, and what they are called here."""


def changes(rows: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
    """Rows of one share partition in the order in which they were written."""
    for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
        named = {name: row[column] for column, name in COLUMNS.items()}
        yield Change(**{**named, "batches": batches(row["stateBatches"])})


def batches(found: Sequence[Mapping[str, int]] | None) -> list[StateBatch]:
    """Return the state batches of a row."""
    return [
        (each["firstOffset"], each["lastOffset"], each["deliveryState"], each["deliveryCount"])
        for each in found or ()
    ]
