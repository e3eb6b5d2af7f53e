"""The native decoder of share state compared with the coordinator's, in Python."""

from __future__ import annotations

import random
import struct
from typing import Any
from uuid import UUID

import pytest
from tests.harness.batches import keyed_batch
from tests.harness.state_columns import rows_of
from tests.harness.state_values import encode_snapshot, encode_update

from sharecore._core import ShareStateFold, StateFold, decode_share_state, whole_batches
from sharecore.sharestate.keys import SharePartitionKey, topic_id_text
from sharecore.sharestate.records import (
    SNAPSHOT,
    UPDATE,
    Snapshot,
    StateBatch,
    Update,
    decode_record,
    encode_key,
    key_of,
    pack_batches,
    unpack_batches,
)

ORDERS = SharePartitionKey("workers", UUID(int=7), 3)
OTHER = SharePartitionKey("andere:Gruppe ü", UUID(int=2**128 - 1), 0)
END = 2**62
Entry = tuple[bytes | None, bytes | None]


def snapshot(key: SharePartitionKey, value: Snapshot) -> Entry:
    return encode_key(SNAPSHOT, key), encode_snapshot(value)


def update(key: SharePartitionKey, value: Update) -> Entry:
    return encode_key(UPDATE, key), encode_update(value)


def history(data: bytes, **options: Any) -> list[dict[str, Any]]:
    return rows_of(decode_share_state(data, 0, END, **options)[0])


def live(data: bytes, **options: Any) -> list[dict[str, Any]]:
    fold = ShareStateFold(0, END, **options)
    fold.take(data)
    found = []
    while rows := rows_of(fold.drain(3)[0]):
        found += rows
    return found


def log(entries: list[Entry], dice: random.Random) -> bytes:
    """Batches of some records each."""
    data, base = [], 0
    while base < len(entries):
        some = entries[base : base + dice.randrange(1, 8)]
        data.append(keyed_batch(some, base=base))
        base += len(some)
    return b"".join(data)


def changes(dice: random.Random, count: int) -> list[Entry]:
    """Random snapshots, updates and tombstones of a few share partitions."""
    keys = [SharePartitionKey(f"group {each % 2}", UUID(int=each), each) for each in range(5)]
    made: list[Entry] = []
    for number in range(count):
        key = dice.choice(keys)
        batches = pack_batches(some_batches(dice))
        done = dice.choice([-1, number])
        kind = dice.random()
        if kind < 0.05:
            made.append((encode_key(dice.choice([SNAPSHOT, UPDATE]), key), None))
        elif kind < 0.3:
            value = Snapshot(number, dice.randrange(3), dice.randrange(9), number, 5, number, batches, done)
            made.append(snapshot(key, value))
        else:
            start = dice.choice([-1, number])  # it never decreases
            made.append(update(key, Update(number, dice.randrange(9), start, batches, done)))
    return made


def some_batches(dice: random.Random) -> list[StateBatch]:
    firsts = sorted(dice.sample(range(400), dice.choice([0, 1, 2, 5, 60])))
    return [(first, first + dice.randrange(9), dice.choice([0, 2, 4]), dice.randrange(6)) for first in firsts]


def test_each_field_becomes_its_column() -> None:
    batches: list[StateBatch] = [(5, 9, 2, 1), (10, 10, 0, 32767)]
    data = keyed_batch(
        [
            snapshot(ORDERS, Snapshot(1, 2, 3, 5, 1_700_000_000_000, -5, pack_batches(batches), 6)),
            update(OTHER, Update(8, 9, -1, b"")),
            (encode_key(SNAPSHOT, ORDERS), None),
        ],
        base=40,
        timestamps=[1_700_000_000_001, 1_700_000_000_000, 1_700_000_000_002],
    )
    numbers = ["snapshotEpoch", "stateEpoch", "leaderEpoch", "startOffset", "deliveryCompleteCount"]
    nothing = dict.fromkeys([*numbers, "createTime", "writeTime", "stateBatches", "error"])
    orders = {"group": "workers", "topicId": topic_id_text(ORDERS.topic_id), "topicPartition": 3}
    assert history(data) == [
        orders
        | {"offset": 40, "timestamp": 1_700_000_000_001, "type": "snapshot", "snapshotEpoch": 1}
        | {"stateEpoch": 2, "leaderEpoch": 3, "startOffset": 5, "deliveryCompleteCount": 6}
        | {"createTime": 1_700_000_000_000, "writeTime": -5, "stateBatches": batches, "error": None},
        nothing
        | {"group": OTHER.group_id, "topicId": "_____________________w", "topicPartition": 0}
        | {"offset": 41, "timestamp": 1_700_000_000_000, "type": "update", "snapshotEpoch": 8}
        | {"leaderEpoch": 9, "startOffset": -1, "deliveryCompleteCount": -1, "stateBatches": []},
        nothing | orders | {"offset": 42, "timestamp": 1_700_000_000_002, "type": "tombstone"},
    ]


@pytest.mark.parametrize("seed", range(8))
def test_history_has_what_the_decoder_in_python_has(seed: int) -> None:
    dice = random.Random(seed)
    entries = changes(dice, 300)
    rows = history(log(entries, dice))
    assert len(rows) == len(entries)
    for offset, ((key, value), row) in enumerate(zip(entries, rows, strict=True)):
        record = decode_record(key, value)
        assert (row["offset"], row["error"]) == (offset, None)
        named = (record.key.group_id, topic_id_text(record.key.topic_id), record.key.partition)
        assert (row["group"], row["topicId"], row["topicPartition"]) == named
        if record.value is None:
            assert (row["type"], row["stateBatches"]) == ("tombstone", None)
            continue
        assert row["type"] == ("snapshot", "update")[record.kind]
        told = record.value._asdict()
        assert row["stateBatches"] == list(unpack_batches(told.pop("batches")))
        names = {"write_ms": "writeTime", "create_ms": "createTime"}
        for name, number in told.items():
            head, *tail = name.split("_")
            assert row[names.get(name, head + "".join(map(str.title, tail)))] == number


@pytest.mark.parametrize("seed", range(8))
def test_live_state_is_what_a_coordinator_replays(seed: int) -> None:
    dice = random.Random(seed)
    entries = changes(dice, 300)
    fold, last = StateFold(), dict[SharePartitionKey, int]()
    for offset, (key, value) in enumerate(entries):
        fold.take(offset, key, value)
        last[decode_record(key, value).key] = offset
    rows = live(log(entries, dice))
    states = {key_of(key): state for key, _, state in fold.states()}
    assert [(row["group"], row["topicPartition"]) for row in rows] == sorted(
        (key.group_id, key.partition) for key in states
    )
    by_partition = {key.partition: (key, state) for key, state in states.items()}
    for row in rows:
        named, state = by_partition[row["topicPartition"]]
        assert (row["type"], row["error"], row["offset"]) == ("live", None, last[named])
        assert row["topicId"] == topic_id_text(named.topic_id)
        assert row["snapshotEpoch"] == state.snapshot_epoch
        assert row["stateEpoch"] == state.state_epoch
        assert row["leaderEpoch"] == state.leader_epoch
        assert row["startOffset"] == state.start_offset
        assert row["deliveryCompleteCount"] == state.delivery_complete_count
        assert (row["createTime"], row["writeTime"]) == (state.create_ms, state.write_ms)
        assert row["stateBatches"] == list(unpack_batches(state.batches()))


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_are_refused_where_the_decoder_in_python_refuses_them(seed: int) -> None:
    dice = random.Random(seed)
    entries: list[tuple[bytes, bytes]] = []
    for key, value in changes(dice, 200):
        if key is None or value is None:
            continue
        fields = [bytearray(key), bytearray(value)]
        which = dice.choice(fields)
        if dice.random() < 0.3:
            del which[dice.randrange(len(which)) :]
        else:
            # lengths and counts are at the ends
            which[dice.choice([dice.randrange(len(which)), dice.randrange(-6, 4)])] = dice.randrange(256)
        entries.append((bytes(fields[0]), bytes(fields[1])))
    refused = 0
    for (key, value), row in zip(entries, history(keyed_batch(entries)), strict=True):
        try:
            record = decode_record(key, value)
        except ValueError:
            refused += 1
            assert (row["type"], row["stateBatches"]) == ("unreadable", None)
            continue
        assert record.value is not None
        if row["error"] is None:
            assert row["startOffset"] == record.value.start_offset
            assert row["stateBatches"] == list(unpack_batches(record.value.batches))
        else:  # tagged fields in a state batch, which the coordinator ignores
            assert any(record.value.batches[19::20])
    assert 20 < refused < len(entries) - 20


def test_what_cannot_be_read_says_why_and_the_rest_is_read() -> None:
    key, value = update(ORDERS, Update(0, 0, 5, b""))
    assert key is not None
    assert value is not None
    good = snapshot(ORDERS, Snapshot(0, 0, 0, 5, 1, 1, b""))
    entries: list[Entry] = [
        (b"\0\2" + key[2:], value),
        (None, value),
        (key + b"\0", value),
        (key, b"\0\1" + value[2:]),
        (key, value + b"\0"),
        (key, value[:-1]),
        good,
    ]
    reasons = [
        "record type 2 is not known",
        "damaged key: there is none",
        "damaged key: too few or too many bytes behind the group id",
        "version 1 of the value is not known",
        "damaged value: there are bytes behind its end",
        "damaged value: it ends too early",
    ]
    data = keyed_batch(entries)
    rows = history(data)
    assert [row["type"] for row in rows] == ["unreadable"] * 6 + ["snapshot"]
    assert [row["error"] for row in rows] == [*reasons, None]
    assert [row["group"] for row in rows] == [None] * 3 + ["workers"] * 4
    assert [row["type"] for row in history(data, keep_unreadable=False)] == ["snapshot"]
    *_, problem = decode_share_state(data, 0, END, keep_unreadable=False)
    assert problem == (0, reasons[0])
    rows = live(data, unreadable_max=3)
    assert [row["type"] for row in rows] == ["live"] + ["unreadable"] * 4
    assert [row["error"] for row in rows] == [None, *reasons[:3], "and 3 more that cannot be read"]
    assert [row["type"] for row in live(data)] == ["live"]
    assert ShareStateFold(0, END).take(data) == (7, (0, reasons[0]))


def test_a_damaged_batch_leaves_one_row_and_the_next_batch_is_read() -> None:
    broken = bytearray(keyed_batch([update(ORDERS, Update(0, 0, 5, b""))] * 3, base=2))
    broken[-1] ^= 1
    good = snapshot(ORDERS, Snapshot(0, 0, 0, 5, 1, 1, b""))
    data = keyed_batch([good, good]) + bytes(broken) + keyed_batch([good], base=5)
    rows = history(data)
    assert [(row["offset"], row["type"]) for row in rows] == [
        (0, "snapshot"),
        (1, "snapshot"),
        (2, "unreadable"),
        (5, "snapshot"),
    ]
    reason = "nothing up to offset 4 can be read: the checksum does not match the bytes"
    assert (rows[2]["error"], rows[2]["timestamp"]) == (reason, None)
    assert ShareStateFold(0, END).take(data) == (6, (2, reason))


def test_updates_need_a_snapshot_before_or_behind_them() -> None:
    late = [update(ORDERS, Update(0, 0, 5, b"")), snapshot(ORDERS, Snapshot(1, 0, 0, 9, 1, 1, b""))]
    assert [row["startOffset"] for row in live(keyed_batch(late), unreadable_max=9)] == [9]
    fold = ShareStateFold(0, END, unreadable_max=9)
    assert fold.take(keyed_batch(late[:1])) == (1, None)
    (row,) = rows_of(fold.drain()[0])
    assert (row["type"], row["group"]) == ("unreadable", "workers")
    assert row["error"] == "an update, and no snapshot before or behind it"
    assert fold.drain() == (fold.drain()[0], (0, row["error"]))
    # a state batch that no engine accepts
    impossible = Snapshot(1, 0, 0, 9, 1, 1, struct.pack(">qqbhx", 5, 4, 2, 1))
    (row,) = live(keyed_batch([snapshot(ORDERS, impossible)]), unreadable_max=9)
    assert row["error"] == "a state batch is impossible"


def test_only_what_is_wanted_becomes_rows() -> None:
    entries = [snapshot(key, Snapshot(0, 0, 0, 5, 1, 1, b"")) for key in (ORDERS, OTHER, ORDERS)]
    data = keyed_batch(entries[:2]) + keyed_batch(entries[2:], base=2)
    (count, buffers), _, _, problem = decode_share_state(data, 1, 2)
    assert ([row["offset"] for row in rows_of((count, buffers))], problem) == ([1], None)
    assert [row["offset"] for row in history(data, group="workers")] == [0, 2]
    assert [row["offset"] for row in live(data, group=OTHER.group_id)] == [1]
    # a batch is read whole, and the next call continues after it
    (count, _), position, following, _ = decode_share_state(data, 0, END, rows_max=1)
    assert (count, following) == (2, 2)
    (count, _), position, following, _ = decode_share_state(data, 0, END, position=position)
    assert (count, position, following) == (1, len(data), 3)
    with pytest.raises(ValueError, match="after the end"):
        decode_share_state(data, 0, END, position=len(data) + 1)
    with pytest.raises(ValueError, match="exceeds"):
        decode_share_state(data, 0, END, expanded_bytes_max=2**30)
    assert whole_batches(data[:-1]) == (len(keyed_batch(entries[:2])), 2)
    assert whole_batches(b"") == (0, None)
