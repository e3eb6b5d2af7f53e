"""Schedules on disk, by key and by time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from sharecore.client.producing.schedules import Schedule
from sharecore.schedules.index import Entry, Index


@pytest.fixture
def index() -> Iterator[Index]:
    with closing(Index()) as made:
        yield made


def entry(due_ms: int, key: bytes, value: bytes = b"v") -> Entry:
    headers = (("name", b"\xff\x00"), ("none", None))
    return Entry(due_ms, Schedule(key, "target", value, at_ms=due_ms, record_key=b"\xfe", headers=headers))


def test_what_is_due_comes_by_time_and_a_new_one_takes_the_place_of_the_old(index: Index) -> None:
    first, second, third = entry(30, b"a"), entry(10, b"b"), entry(20, b"c")
    index.change([(b"a", first), (b"b", second), (b"c", third)])
    assert index.due(20, 10) == [second, third]
    assert index.due(20, 1) == [second]
    later = entry(40, b"b", b"other")
    index.change([(b"b", later), (b"c", None), (b"unknown", None)])
    assert (list(index), len(index), index.next_ms()) == ([first, later], 2, 30)


def test_what_is_put_off_lets_others_pass_and_keeps_its_time(index: Index) -> None:
    first, second = entry(10, b"a"), entry(20, b"b")
    index.change([(b"a", first), (b"b", second)])
    index.put_off(b"a", 100)
    assert (index.due(50, 10), index.next_ms()) == ([second], 20)
    assert index.due(100, 10) == [second, first]


def test_an_empty_index_has_nothing_due(index: Index) -> None:
    assert (index.next_ms(), index.due(10**18, 5), len(index)) == (None, [], 0)


def test_a_killed_process_leaves_no_file() -> None:
    with closing(Index()) as made:
        # more than its cache, so that it writes
        made.change([(b"%d" % at, entry(at, b"%d" % at, bytes(1 << 20))) for at in range(40)])
        written = [found.st_nlink for found in map(_opened, os.listdir("/proc/self/fd")) if found]
        assert written == [0]


def _opened(descriptor: str) -> os.stat_result | None:
    """Return an open file of more than 32 MiB."""
    try:
        found = os.fstat(int(descriptor))
    except OSError:
        return None  # it served the listing itself
    return found if found.st_size > 32 << 20 else None
