"""Cached batches return the same as the log, piece by piece or whole."""

from __future__ import annotations

import random
import struct

import pytest
from tests.harness.batches import keyed_batch

from sharecore._core import encode_batch
from sharecore.storage import Slice
from sharecore.storage.log import ANY_RECORDS
from sharecore.tier.upstream.window import Budget, Window
from sharecore.upstream import Fetched

LOTS = 1 << 30


class Upstream:
    """A log with batches of one to five records, and some holes."""

    def __init__(self, seed: int, batches: int = 60) -> None:
        self.random = random.Random(seed)
        self.batches: list[tuple[int, int, bytes]] = []
        offset = self.start = self.random.randrange(100)
        for _ in range(batches):
            count = self.random.randint(1, 5)
            data = encode_batch([(b"k", b"v" * self.random.randint(1, 50))] * count, now_ms=1, producer=None)
            self.batches.append((offset, offset + count - 1, struct.pack(">q", offset) + data[8:]))
            offset += count + self.random.choice((0, 0, 0, 3))
        self.end = self.batches[-1][1] + 1

    def fetch(self, offset: int, count: int) -> Fetched:
        some = [each for each in self.batches if each[1] >= offset][:count]
        end = some[-1][1] + 1 if some else offset
        return Fetched(b"".join(each[2] for each in some), offset, end, self.end, self.end, self.start, [])

    def read(
        self, offset: int, max_bytes: int, limit: int, max_records: int, *, at_least_one: bool
    ) -> list[tuple[int, int]]:
        """Return what the store's logs would: whole batches within the bytes, up to the limit and the
        records.
        """
        found: list[tuple[int, int]] = []
        size = 0
        for first, last, data in self.batches:
            if last < offset:
                continue
            if last >= limit or (size + len(data) > max_bytes and (found or not at_least_one)):
                break
            found.append((first, last))
            size += len(data)
            if last >= offset + max_records - 1:
                break
        return found


@pytest.mark.parametrize("seed", range(8))
def test_reads_are_those_of_the_log(seed: int) -> None:
    log = Upstream(seed)
    window = Window(Budget(LOTS))
    offset = log.start
    while offset < log.end:
        fetched = log.fetch(offset, log.random.randint(1, 7))
        window.add(fetched)
        offset = fetched.end
    data = {(first, last): data for first, last, data in log.batches}
    for _ in range(300):
        offset = log.random.randrange(log.start, log.end)
        max_bytes = log.random.choice((1, 100, 400, LOTS))
        limit = log.random.choice((log.end, log.random.randrange(offset, log.end + 1)))
        records = log.random.choice((1, 7, ANY_RECORDS))
        at_least_one = log.random.random() < 0.5
        expected = log.read(offset, max_bytes, limit, records, at_least_one=at_least_one)
        found = window.read(offset, max_bytes, limit=limit, at_least_one=at_least_one, max_records=records)
        assert found is not None
        assert found.batches == expected
        assert found.records == b"".join(data[each] for each in expected)
        size = sum(len(data[each]) for each in log.read(offset, max_bytes, limit, LOTS, at_least_one=True))
        assert window.readable_bytes(offset, max_bytes, limit=limit) == size


def test_what_is_not_kept_is_asked_for() -> None:
    log = Upstream(1)
    window = Window(Budget(LOTS))
    first = log.fetch(log.start, 3)
    window.add(first)
    window.add(log.fetch(log.batches[10][0], 2))

    def read(offset: int, limit: int = log.end) -> Slice | None:
        return window.read(offset, LOTS, limit=limit, at_least_one=True, max_records=ANY_RECORDS)

    assert read(log.batches[5][0]) is None
    assert read(log.end - 1) is None
    found = read(log.start)
    assert found is not None
    assert len(found.batches) == 3, "as far as it is kept"
    assert window.readable_bytes(log.start, LOTS, limit=log.end) is None
    assert read(first.end, first.end) is not None, "there is nothing to read"


def test_what_was_not_read_for_longest_goes_first() -> None:
    log = Upstream(2)
    one = len(log.fetch(log.start, 5).records)
    budget = Budget(one * 5 // 2)
    windows = [Window(budget) for _ in range(3)]
    for window in windows[:2]:
        window.add(log.fetch(log.start, 5))
    assert budget.used == 2 * one
    windows[0].read(log.start, LOTS, limit=log.end, at_least_one=True, max_records=ANY_RECORDS)
    windows[2].add(log.fetch(log.start, 5))
    assert [window.size_bytes for window in windows] == [one, 0, one]
    assert budget.used == 2 * one
    for window in windows:
        window.clear()
    assert budget.used == 0


def test_one_chunk_is_kept_however_large() -> None:
    log = Upstream(3)
    budget = Budget(1)
    window = Window(budget)
    window.add(log.fetch(log.start, 5))
    window.add(log.fetch(log.start, 7))
    assert window.size_bytes == budget.used == len(log.fetch(log.start, 7).records)


def test_aborted_transactions_are_those_of_what_is_kept() -> None:
    log = Upstream(4)
    window = Window(Budget(LOTS))
    first = log.fetch(log.start, 3)._replace(aborted=[(9, 1), (8, 2)])
    second = log.fetch(first.end, 3)._replace(aborted=[(9, 1), (7, 3)])
    window.add(first)
    window.add(second)
    assert window.aborted(log.start, first.end) == [(9, 1), (8, 2)]
    assert window.aborted(log.start, second.end) == [(9, 1), (8, 2), (7, 3)]


def test_aborted_transactions_of_a_batch_that_begins_before_what_was_fetched() -> None:
    data = transactional([5, 6, 7, 8], base=5, producer_id=9)
    window = Window(Budget(LOTS))
    # fetched from the middle of a batch, as after deletion of earlier records
    window.add(Fetched(data, 7, 9, 20, 20, 7, [(9, 5)]))
    assert window.read(7, LOTS, limit=20, at_least_one=True, max_records=ANY_RECORDS) is not None
    assert window.aborted(5, 9) == [(9, 5)]


def test_a_transaction_that_has_ended_says_nothing_of_the_next_one_of_its_producer() -> None:
    aborted = transactional([0, 1], base=0, producer_id=9) + ended(base=2, producer_id=9, commit=False)
    committed = transactional([3, 4], base=3, producer_id=9) + ended(base=5, producer_id=9, commit=True)
    again = transactional([6], base=6, producer_id=9)
    window = Window(Budget(LOTS))
    window.add(Fetched(aborted + committed + again, 0, 7, 20, 20, 0, [(9, 0), (9, 6)]))
    assert window.aborted(0, 7) == [(9, 0), (9, 6)]
    assert window.aborted(0, 5) == [(9, 0)]
    # a reader past the marker must not take committed records for aborted
    assert window.aborted(3, 6) == []
    assert window.aborted(3, 7) == [(9, 6)]


def transactional(values: list[int], *, base: int, producer_id: int) -> bytes:
    entries = [(None, b"%d" % value) for value in values]
    return keyed_batch(entries, base=base, producer_id=producer_id, producer_epoch=0, transactional=True)


def ended(*, base: int, producer_id: int, commit: bool) -> bytes:
    """Return the marker of a transaction."""
    entry = b"\0\0\0" + bytes([commit]), bytes(6)
    data = bytearray(
        keyed_batch([entry], base=base, producer_id=producer_id, producer_epoch=0, transactional=True)
    )
    data[22] |= 1 << 5
    return bytes(data)
