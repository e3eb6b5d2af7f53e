"""Share state out of log segments, whole and damaged ones, and out of a log that loses its beginning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.harness.batches import keyed_batch
from tests.harness.state_values import encode_snapshot, encode_update

from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey, topic_id_text
from sharecore.sharestate.records import (
    SNAPSHOT,
    UPDATE,
    Snapshot,
    Update,
    encode_key,
    pack_batches,
)
from sharecore.spark import state_files, state_wire
from sharecore.spark.state_options import read_state_options
from sharecore.spark.state_parts import Moved, StateLog, StatePartition
from sharecore.spark.state_read import read_state

TOPIC_ID = UUID(int=9)
KEY = SharePartitionKey("workers", TOPIC_ID, 0)
METADATA = f"version: 0\ntopic_id: {topic_id_text(TOPIC_ID)}\n"


def snapshot(start: int) -> tuple[bytes, bytes]:
    value = Snapshot(start, 0, 0, start, 1, 1, pack_batches([(start + 5, start + 9, 2, 1)]))
    return encode_key(SNAPSHOT, KEY), encode_snapshot(value)


def update(start: int) -> tuple[bytes, bytes]:
    value = Update(0, 0, start, pack_batches([(start, start + 1, 0, 2)]))
    return encode_key(UPDATE, KEY), encode_update(value)


def directory(root: Path, segments: dict[int, bytes]) -> Path:
    """Return a log directory of Apache Kafka's with a partition of the state topic, and one of a topic."""
    home = root / "__share_group_state-3"
    home.mkdir()
    for base, data in segments.items():
        (home / f"{base:020}.log").write_bytes(data)
    (home / "00000000000000000000.index").write_bytes(b"x")
    (home / "00000000000000000007.log.deleted").write_bytes(b"x")
    (root / "orders-0").mkdir()
    (root / "orders-0" / "partition.metadata").write_text(METADATA)
    return home


def read(path: Path, **options: str) -> list[dict[str, Any]]:
    chosen = read_state_options({"path": str(path), **options})
    rows = []
    for part in state_files.plan(str(path), chosen.view):
        for batch in read_state(part, state_files.SegmentLog(part), chosen):
            batch.validate(full=True)
            rows += batch.to_pylist()
    return rows


@pytest.mark.parametrize("inside", ["", "__share_group_state-3"])
def test_segments_are_read_in_their_order(tmp_path: Path, inside: str) -> None:
    directory(
        tmp_path, {0: keyed_batch([snapshot(0), update(3)]), 2: keyed_batch([update(4), update(6)], base=2)}
    )
    path = tmp_path / inside
    history = read(path)
    assert [(row["partition"], row["offset"], row["type"], row["topic"]) for row in history] == [
        (3, 0, "snapshot", "orders"),
        (3, 1, "update", "orders"),
        (3, 2, "update", "orders"),
        (3, 3, "update", "orders"),
    ]
    assert len(state_files.plan(str(path), "history")) == 2
    (state,) = read(path, view="live")
    assert (state["startOffset"], state["offset"], state["topic"]) == (6, 3, "orders")
    assert [tuple(batch.values()) for batch in state["stateBatches"]] == [(6, 7, 0, 2), (8, 9, 2, 1)]


def test_one_segment_is_read_alone(tmp_path: Path) -> None:
    home = directory(tmp_path, {0: keyed_batch([snapshot(0)]), 1: keyed_batch([update(4)], base=1)})
    assert [row["offset"] for row in read(home / f"{1:020}.log")] == [1]
    with pytest.raises(KafkaError, match="an update, and no snapshot before or behind it"):
        read(home / f"{1:020}.log", view="live")


def test_what_is_damaged_is_dealt_with_as_the_mode_says(tmp_path: Path) -> None:
    broken = bytearray(keyed_batch([update(3), update(4)], base=1))
    broken[-1] ^= 1
    directory(tmp_path, {0: keyed_batch([snapshot(0)]) + bytes(broken) + keyed_batch([update(5)], base=3)})
    for view in ("history", "live"):
        with pytest.raises(KafkaError, match=r"at offset 1: .*checksum.*; mode=PERMISSIVE") as raised:
            read(tmp_path, view=view)
        assert raised.value.code == ErrorCode.CORRUPT_MESSAGE
        rows = read(tmp_path, view=view, mode="permissive")
        (row,) = (row for row in rows if row["error"] is not None)
        assert (row["type"], row["offset"]) == ("unreadable", 1)
        assert (row["group"], row["topicPartition"]) == (None, None)
        rest = [row for row in rows if row["error"] is None]
        assert rest == read(tmp_path, view=view, mode="DROPMALFORMED")
        assert [row["startOffset"] for row in rest] == ([0, 5] if view == "history" else [5])


def test_a_segment_that_was_cut_off_is_told_of(tmp_path: Path) -> None:
    whole = keyed_batch([snapshot(0)])
    home = directory(tmp_path, {0: whole + keyed_batch([update(3)], base=1)[:-1]})
    file = home / f"{0:020}.log"
    for view in ("history", "live"):
        expected = f"{re.escape(str(file))}: \\d+ bytes at {len(whole)} are no whole record batch"
        with pytest.raises(KafkaError, match=expected):
            read(tmp_path, view=view)
        rows = read(tmp_path, view=view, mode="PERMISSIVE")
        assert [(row["offset"], row["type"]) for row in rows][1:] == [(1, "unreadable")]
        assert len(read(tmp_path, view=view, mode="DROPMALFORMED")) == 1
        file.write_bytes(whole + bytes(1000))  # like a file of a broker that preallocates
        assert len(read(tmp_path, view=view)) == 1
        file.write_bytes(whole + keyed_batch([update(3)], base=1)[:-1])


def test_batches_beyond_what_is_read_at_once_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_files, "CHUNK_BYTES", 100)
    many = pack_batches((2 * each, 2 * each, 2, 1) for each in range(1000))
    large = (encode_key(SNAPSHOT, KEY), encode_snapshot(Snapshot(0, 0, 0, 0, 1, 1, many)))
    directory(tmp_path, {0: keyed_batch([large]) + keyed_batch([update(3)], base=1)})
    history = read(tmp_path)
    assert [len(row["stateBatches"]) for row in history] == [1000, 1]


class Restless:
    """A log of records 0 to 4, one a batch, whose beginning moves while it is read.

    Args:
        moves: how often it does.
    """

    def __init__(self, moves: int) -> None:
        self.moves, self.start = moves, 0

    def bounds(self) -> tuple[int, int]:
        return self.start, 5

    def chunks(self, first: int, end: int) -> Iterator[bytes]:
        if first < self.start:
            raise Moved
        records = [snapshot(0), update(1), update(2), snapshot(3), update(4)]
        for offset in range(first, end):
            if self.moves and offset == self.start + 1:
                self.moves -= 1
                self.start = min(3, self.start + 2)
                raise Moved
            yield keyed_batch([records[offset]], base=offset)

    def names(self, topic_ids: Iterable[str]) -> dict[str, str]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


class Lost(Restless):
    """A log that has moved whenever it is read."""

    def chunks(self, first: int, end: int) -> Iterator[bytes]:
        raise Moved


def rows_of(log: StateLog, view: str) -> list[dict[str, Any]]:
    chosen = read_state_options({"path": "unused", "view": view})
    part = StatePartition(0, 0, 4)
    return [row for batch in read_state(part, log, chosen) for row in batch.to_pylist()]


def test_a_log_that_loses_its_beginning_is_read_from_where_it_begins() -> None:
    assert [row["offset"] for row in rows_of(Restless(1), "history")] == [0, 2, 3]
    # the update at 2 belongs to a deleted snapshot, so records after the planned end are needed
    (state,) = rows_of(Restless(2), "live")
    assert (state["startOffset"], state["offset"], state["error"]) == (4, 4, None)
    for view in ("history", "live"):
        with pytest.raises(KafkaError, match="was let go of 5 times while it was read; try again"):
            rows_of(Lost(0), view)


def test_errors_of_a_cluster_say_what_to_do() -> None:
    for code, hint in {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant DESCRIBE and READ on that topic",
        ErrorCode.SASL_AUTHENTICATION_FAILED: "kafka.sasl",
        ErrorCode.NETWORK_EXCEPTION: "no broker answers at kafka.bootstrap.servers=there:1",
    }.items():
        found = state_wire.explain(KafkaError(code, "why"), "there:1")
        assert (found.code, hint in str(found), "why" in str(found)) == (code, True, True)
