"""The audit of a history: what the coordinator writes passes, what it never writes fails."""

from __future__ import annotations

import random
from collections.abc import Iterable
from uuid import UUID

import pytest

from sharecore.coordinator_log.topic_log import Record
from sharecore.jobs.changes import SNAPSHOT, TOMBSTONE, UPDATE, Change
from sharecore.jobs.invariants import ERROR, WARNING, audit
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import (
    Snapshot,
    StateBatch,
    decode_record,
    unpack_batches,
)
from sharecore.sharestate.state import ShareState

SHARE_PARTITION = SharePartitionKey("group", UUID(int=1), 0)


def snapshot(
    offset: int, epoch: int, start: int, batches: Iterable[StateBatch] = (), **fields: int
) -> Change:
    batches = list(batches)
    return Change(
        0,
        offset,
        SNAPSHOT,
        epoch,
        fields.get("state_epoch", 0),
        fields.get("leader_epoch", 0),
        start,
        fields.get("complete", -1),
        batches,
    )


def update(offset: int, epoch: int, start: int, batches: Iterable[StateBatch] = (), **fields: int) -> Change:
    leader_epoch, complete = fields.get("leader_epoch", 0), fields.get("complete", -1)
    return Change(0, offset, UPDATE, epoch, None, leader_epoch, start, complete, list(batches))


def rules(*changes: Change) -> list[tuple[str, str, int]]:
    return [(each.severity, each.rule, each.offset) for each in audit(changes)]


def test_a_quiet_history() -> None:
    history = [
        snapshot(0, 0, 0, complete=0),
        update(1, 0, 0, [(0, 4, 2, 1), (5, 5, 0, 1)], complete=5),
        update(2, 0, 5, [(5, 5, 0, 2), (6, 9, 4, 1)], complete=4),
        snapshot(3, 1, 5, [(5, 5, 2, 3), (6, 9, 4, 1)], complete=5),
        # a reset
        snapshot(4, 2, 0, state_epoch=1, complete=0),
        Change(0, 5, TOMBSTONE),
        snapshot(6, 0, -1),
        update(7, 0, 100, complete=0),
    ]
    assert rules(*history) == []


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("start offset goes back", update(1, 3, 9)),
        ("start offset goes back", snapshot(1, 4, -1, [(12, 14, 2, 1), (15, 19, 0, 2)])),
        ("snapshot epoch", snapshot(1, 3, 10, [(12, 14, 2, 1), (15, 19, 0, 2)])),
        ("snapshot epoch of an update", update(1, 2, 10)),
        ("state epoch", snapshot(1, 4, 10, [(12, 14, 2, 1), (15, 19, 0, 2)], state_epoch=6, leader_epoch=9)),
        ("leader epoch", update(1, 3, 10, leader_epoch=1)),
        ("delivery count falls", update(1, 3, 10, [(15, 15, 0, 1)])),
        ("settled record changes", update(1, 3, 10, [(12, 12, 0, 2)])),
        ("settled record changes", update(1, 3, 10, [(14, 16, 4, 2)])),
        ("snapshot forgets", snapshot(1, 4, 10, [(12, 14, 2, 1)])),
        ("snapshot forgets", snapshot(1, 4, 11, [(12, 13, 2, 1), (15, 19, 0, 2)])),
        ("batches overlap", update(1, 3, 10, [(20, 25, 0, 1), (25, 26, 2, 1)])),
        ("batches overlap", update(1, 3, 10, [(24, 25, 0, 1), (20, 21, 2, 1)])),
        ("batch below start offset", update(1, 3, 30, [(20, 25, 0, 1)])),
        ("impossible batch", update(1, 3, 10, [(25, 24, 0, 1)])),
        ("impossible state", update(1, 3, 10, [(25, 25, 1, 1)])),
        ("impossible state", update(1, 3, 10, [(25, 25, 7, 1)])),
        ("unreadable", Change(0, 1, "unreadable", error="damaged value")),
    ],
)
def test_what_must_not_be(rule: str, change: Change) -> None:
    before = snapshot(0, 3, 10, [(12, 14, 2, 1), (15, 19, 0, 2)], state_epoch=7, leader_epoch=2)
    if change.kind == SNAPSHOT and change.state_epoch == 0:
        change = change._replace(state_epoch=7, leader_epoch=2)
    elif change.kind == UPDATE and change.leader_epoch == 0:
        change = change._replace(leader_epoch=2)
    assert rules(before, change) == [(ERROR, rule, 1)]


@pytest.mark.parametrize(
    ("rule", "history"),
    [
        ("update without snapshot", [update(1, 0, 0)]),
        ("snapshot epoch", [snapshot(0, 0, 0), snapshot(1, 2, 0)]),
        ("delivery-complete count", [snapshot(0, 0, 0), update(1, 0, 0, [(3, 4, 2, 1)], complete=3)]),
    ],
)
def test_what_is_odd(rule: str, history: list[Change]) -> None:
    assert rules(*history) == [(WARNING, rule, 1)]


def recorded(offset: int, record: Record) -> Change:
    value = decode_record(*record).value
    assert value is not None
    whole = value if isinstance(value, Snapshot) else None
    return Change(
        0,
        offset,
        UPDATE if whole is None else SNAPSHOT,
        value.snapshot_epoch,
        None if whole is None else whole.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        list(unpack_batches(value.batches)),
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_the_coordinator_writes_passes(seed: int) -> None:
    """Random operations on the engine, written as the broker writes them."""
    from sharecore._core import Partition
    from sharecore.errors import KafkaError

    rng = random.Random(seed)
    partition = Partition(max_delivery_count=3, max_inflight=60, lock_ms=10)
    state = ShareState(SHARE_PARTITION)
    records = [state.initialize(0, 0, now_ms=0, updates_per_snapshot=7)]
    for now in range(1, 400):
        member = f"member-{rng.randrange(3)}"
        fetch = partition.next_fetch_offset
        partition.acquire(now, member, [(fetch, fetch + 4)], fetch_offset=fetch, max_fetch_records=5)
        first = partition.start_offset + rng.randrange(60)
        try:
            kinds = bytes(rng.choice(b"\x01\x01\x02\x03") for _ in range(3))
            writes = [partition.acknowledge(now, member, [(first, first + 2, kinds)])]
        except KafkaError:
            writes = [partition.release(now, member) if rng.random() < 0.1 else partition.advance(now)]
        for write in writes:
            if write is not None:
                is_snapshot, value = state.content.write_begun(write, now, 7)
                records.append((state.snapshot_key if is_snapshot else state.update_key, value))
                partition.commit(write.id, now)
        if now % 100 == 0:
            records.append(state.snapshot(now, 0))
            raised = state.raise_leader_epoch(now, now_ms=now, updates_per_snapshot=7)
            assert raised is not None
            records.append(raised)
    history = [recorded(offset, record) for offset, record in enumerate(records)]
    assert len(history) > 100
    assert list(audit(history)) == []
    # and with one changed record it fails
    at, before = len(history) // 2, history[len(history) // 2 - 1]
    changed = history[at]._replace(start_offset=(before.start_offset or 0) - 1)
    assert ERROR in {each.severity for each in audit([*history[:at], changed, *history[at + 1 :]])}
