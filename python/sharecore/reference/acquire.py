"""The records acquired by a fetch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from sharecore.reference.record import AVAILABLE, Batch, Record
from sharecore.reference.window import Window


@dataclass(slots=True)
class Acquisition:
    """One walk over the record batches of a read, acquiring available records."""

    window: Window
    record_batches: list[tuple[int, int]]
    member: str
    deadline_ms: int
    max_delivery_count: int
    batch_size: int
    record_limit: bool
    known_only: bool = False
    """Acquire only records that are in flight."""
    acquired: list[tuple[int, int, int]] = field(default_factory=list)
    count: int = 0

    def run(self, fetch_offset: int, wanted: int, last: int) -> list[tuple[int, int, int]]:
        """Acquire up to `wanted` records, none after `last`."""
        if not self.record_batches:
            return []
        base, last = self.record_batches[0][0], min(last, self.record_batches[-1][1])
        if wanted <= 0 or self.record_batches[-1][1] < self.window.start_offset:
            return []
        self._archive_vanished(fetch_offset, base)
        if last < base:
            return []
        if self.known_only:
            return self._lease_known(max(base, self.window.start_offset), last, wanted)
        if self.window.unread_from is not None:
            base = max(base, self.window.start_offset)
        known = self.window.between(base, last)
        if not known:
            self._lease_new(base, last, wanted)
        else:
            self._walk(known, base, last, wanted)
            if self.acquired:
                self.window.read_up_to(self.acquired[-1][1] + 1)
        return self.acquired

    def _lease_known(self, base: int, last: int, wanted: int) -> list[tuple[int, int, int]]:
        for batch in self.window.between(base, last):
            if self.count >= wanted or self._lease_again(batch, base, last, wanted - self.count):
                break
        return self.acquired

    def _archive_vanished(self, fetch_offset: int, base: int) -> None:
        """Archive records between the fetch offset and the first batch: they are gone from the log
        (compaction).
        """
        if fetch_offset < base:
            self.window.archive_available(fetch_offset, base - 1)

    def _walk(self, known: list[Batch], base: int, last: int, wanted: int) -> None:
        cursor = base
        for batch in known:
            if self.count >= wanted:
                return
            if self.window.unread_from is not None:
                if cursor < batch.first:
                    self._lease_new(cursor, batch.first - 1, wanted - self.count)
                cursor = batch.last + 1
                if self.count >= wanted:
                    return
            if self._lease_again(batch, base, last, wanted - self.count):
                return
        if self.count < wanted and known[-1].last < last:
            self._lease_new(known[-1].last + 1, last, wanted - self.count)

    def _lease_again(self, batch: Batch, base: int, last: int, wanted: int) -> bool:
        """Acquire the available records of a known batch; return True if nothing may follow them.

        Near its delivery limit a record is delivered with fewer and fewer others, in its last delivery alone,
        so that one bad record does not archive its neighbors.
        """
        available = [
            (o, r)
            for o, r in self.window.items(max(base, batch.first), min(last, batch.last))
            if r.acquirable
        ]
        slow_from = max(2, (self.max_delivery_count + 1) // 2)
        slowed = any(record.delivery_count >= slow_from for _, record in available)
        if slowed and self.count:
            return True
        most = wanted if self.record_limit else len(batch)
        company: int | None = None
        taken = 0
        for offset, record in available:
            last_attempt = (
                self.max_delivery_count > 2 and record.delivery_count == self.max_delivery_count - 1
            )
            if last_attempt and taken:
                break
            if record.delivery_count >= slow_from and company is None:
                company = max(1, len(batch) >> (record.delivery_count - slow_from + 1))
            self._lease(offset, record, joins=taken > 0)
            taken += 1
            if last_attempt or taken in (most, company):
                break
        return slowed and taken > 0

    def _lease(self, offset: int, record: Record, *, joins: bool) -> None:
        record.acquire(self.member, self.deadline_ms)
        self.count += 1
        if joins and self.acquired[-1][1:] == (offset - 1, record.delivery_count):
            self.acquired[-1] = (self.acquired[-1][0], offset, record.delivery_count)
        else:
            self.acquired.append((offset, offset, record.delivery_count))

    def _lease_new(self, first: int, last: int, wanted: int) -> None:
        """Acquire offsets that were never in flight, up to the end of a record batch."""
        window = self.window
        if not window.batches and window.end_offset >= first:
            first = window.end_offset
        taken_last = last
        if wanted < last - first + 1:
            reached = first + wanted - 1
            taken_last = max(
                [reached, *(b_last for b_base, b_last in self.record_batches if b_base <= reached)]
            )
            if window.unread_from is not None:
                taken_last = min(taken_last, last)
        lease_last = min(taken_last, first + wanted - 1) if self.record_limit else taken_last
        size = sys.maxsize if self.record_limit else self.batch_size
        for batch_first, batch_last in cut(self.record_batches, first, taken_last, size):
            window.add(Batch(batch_first, batch_last), Record(AVAILABLE, 0))
            taken = False
            for offset in range(batch_first, min(batch_last, lease_last) + 1):
                self._lease(offset, window.records[offset], joins=taken)
                taken = True
        if window.batches[0].first == first:
            window.start_offset = first
        window.archive_available(first, window.start_offset - 1)
        window.end_offset = max(window.end_offset, taken_last)
        window.read_up_to(lease_last + 1)


def cut(batches: Sequence[tuple[int, int]], first: int, last: int, batch_size: int) -> list[tuple[int, int]]:
    """Split first to last at record-batch boundaries, into parts of at least `batch_size` offsets."""
    parts = []
    for base, _ in batches:
        if first < base <= last and base - first >= batch_size:
            parts.append((first, base - 1))
            first = base
    return [*parts, (first, last)]
