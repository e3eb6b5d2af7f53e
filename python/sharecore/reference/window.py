"""The in-flight records: their offsets, the start of the window, and the next fetch."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import pairwise

from sharecore.reference.record import ACKNOWLEDGED, ARCHIVED, AVAILABLE, Batch, Record, StateBatch, coalesce


class Window:
    """In-flight records by offset, from the start offset (SPSO) to the end offset (SPEO).

    A batch stays until all of it lies below the start offset and none of it is acquired: records overtaken by
    a log start still belong to their members.

    `unread_from`: where records that were never fetched may lie between loaded ones. After a load, gaps in
    the state are records that were never acquired, while later gaps are offsets missing from the log. The
    distinction ends when anything is acquired past the loaded end.
    """

    def __init__(self, start_offset: int, state_batches: Iterable[StateBatch]) -> None:
        self.records: dict[int, Record] = {}
        self.batches: list[Batch] = []
        self.start_offset = start_offset
        self.end_offset = start_offset
        self._unread_from: int | None = None
        self._loaded_end = start_offset
        follows = start_offset
        for first, last, state, count in sorted(state_batches):
            if first > follows and self._unread_from is None:
                self._unread_from = follows
            follows = last + 1
            self.add(Batch(first, last), Record(state, count))
        if self.batches:
            self.end_offset = self._loaded_end = self.batches[-1].last

    @property
    def unread_from(self) -> int | None:
        if self._unread_from is None or not self._unread_from <= self._loaded_end == self.end_offset:
            return None
        return self._unread_from

    def read_up_to(self, offset: int) -> None:
        """Record that everything below `offset` was fetched or is known to be absent."""
        self._unread_from = None if self.unread_from is None else offset

    def add(self, batch: Batch, like: Record) -> None:
        insort(self.batches, batch)
        for offset in batch.offsets():
            self.records[offset] = Record(like.state, like.delivery_count, like.member, like.deadline_ms)

    def batch_at_or_before(self, offset: int) -> Batch | None:
        index = bisect_right(self.batches, offset, key=lambda b: b.first)
        return self.batches[index - 1] if index else None

    def between(self, first: int, last: int) -> list[Batch]:
        """Return the batches with an offset in first to last."""
        return [b for b in self.batches if b.last >= first and b.first <= last]

    def items(self, first: int, last: int) -> Iterator[tuple[int, Record]]:
        """Yield the records of offsets first to last, in order."""
        for batch in self.between(first, last):
            for offset in range(max(first, batch.first), min(last, batch.last) + 1):
                yield offset, self.records[offset]

    def all(self) -> Iterator[tuple[int, Record]]:
        """Yield every record, including acquired ones below the start offset."""
        for batch in self.batches:
            for offset in batch.offsets():
                yield offset, self.records[offset]

    def in_window(self) -> Iterator[tuple[int, Record]]:
        return self.items(self.start_offset, self.end_offset)

    @property
    def passed_all(self) -> bool:
        """Whether no record from the start offset is in flight."""
        return not self.batches or self.batches[-1].last < self.start_offset

    @property
    def in_flight(self) -> int:
        """The number of offsets in the window, gaps included, for the in-flight limit."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def delivery_complete_count(self) -> int:
        return sum(record.state in (ACKNOWLEDGED, ARCHIVED) for _, record in self.in_window())

    @property
    def next_fetch_offset(self) -> int:
        """Return the next offset to fetch: the first available or never-read one, else past the end."""
        if self.passed_all:
            return self.end_offset
        unread = self.unread_hole
        for batch in self.batches:
            if unread is not None and batch.first > unread:
                return unread
            for offset in batch.offsets():
                if offset >= self.start_offset and self.records[offset].acquirable:
                    return offset
        return self.end_offset + 1

    @property
    def unread_hole(self) -> int | None:
        """Return the first offset between loaded records that may hold a record never fetched."""
        unread = self.unread_from
        if unread is None:
            return None
        for batch in self.batches:
            if batch.first > unread:
                return unread
            unread = max(unread, batch.last + 1)
        return None

    def pass_hole(self, first: int, last: int) -> None:
        """Move the start offset over first to last, where the log has no records."""
        self.archive_available(first, last)
        unread = self.unread_hole
        if unread is not None and first <= unread <= last:
            self.read_up_to(last + 1)
        if self.batches and first <= self.start_offset <= last:
            self.start_offset = max(self.start_offset, min(self.batches[0].first, last + 1))
        self.advance_start()

    def archive_available(self, first: int, last: int) -> None:
        """Archive available records in first to last, even with a pending write: the log lost them."""
        for _, record in self.items(first, last):
            if record.state == AVAILABLE:
                record.end_lock(ARCHIVED)
                record.before = None

    def move_start(self, offset: int) -> None:
        """Move the log start to `offset`. Acquired records below stay until their locks end."""
        self.archive_available(self.start_offset, offset - 1)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        if self._unread_from is not None:
            self._unread_from = max(self._unread_from, offset)

    def advance_start(self) -> None:
        """Move the start offset over finished records, and drop them."""
        if not self.may_advance():
            return
        passed = self._settled_up_to()
        if passed is None:
            return
        if passed == self.batches[-1].last:
            self.start_offset = self.end_offset = max(self.start_offset, passed + 1)
        else:
            following = next(b for b in self.batches if b.last > passed)
            start = max(passed + 1, following.first)
            if self.unread_from is not None:
                start = min(start, self.unread_from)
            self.start_offset = max(self.start_offset, start)
        self._forget()

    def _settled_up_to(self) -> int | None:
        """Return the end of the leading part in which every record is finished or below the start offset."""
        unread = self.unread_from
        passed = None
        for batch in self.batches:
            if unread is not None and batch.last >= unread:
                break
            for offset in batch.offsets():
                if offset >= self.start_offset and not self.records[offset].settled:
                    return passed
                passed = offset
        return passed

    def may_advance(self) -> bool:
        """Return whether the start offset is at a finished record, or in a gap of the log."""
        batch = self.batch_at_or_before(self.start_offset)
        if batch is None:
            return False
        record = self.records.get(self.start_offset)
        return record is None or record.settled

    def _forget(self) -> None:
        kept = []
        for batch in self.batches:
            if batch.last >= self.start_offset or any(not self.records[o].settled for o in batch.offsets()):
                kept.append(batch)
            else:
                for offset in batch.offsets():
                    del self.records[offset]
        self.batches = kept

    def state(self) -> list[StateBatch]:
        return coalesce((o, o, r.state, r.delivery_count) for o, r in self.in_window())

    def state_of(self, offsets: Iterable[int]) -> tuple[StateBatch, ...]:
        chosen = ((o, self.records[o]) for o in sorted(offsets))
        return tuple(coalesce((o, o, r.state, r.delivery_count) for o, r in chosen))

    def check(self) -> None:
        assert self.start_offset <= self.end_offset + 1
        assert self.batches == sorted(self.batches)
        assert all(a.last < b.first for a, b in pairwise(self.batches))
        assert [o for b in self.batches for o in b.offsets()] == sorted(self.records)
        assert not self.batches or self.batches[-1].last <= self.end_offset
        assert not any(o < self.start_offset and record.acquirable for o, record in self.all())
