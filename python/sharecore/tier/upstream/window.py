"""Cache of upstream record batches, in encoded form."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import NamedTuple, Unpack

from sharecore.storage import Slice
from sharecore.storage.log import ANY_RECORDS, ReadSpec
from sharecore.tier.upstream.batches import measure_batches, producer_at
from sharecore.upstream import Fetched

_ATTRIBUTES_AT = 22
"""Position of the low attributes byte of a batch."""
_CONTROL = 1 << 5


class Chunk:
    """Record batches of one fetch.

    Attributes:
        first: the fetch offset; no record is between it and the first batch.
        end: the offset after the last batch.
        aborted: producer, first offset and marker offset of aborted transactions that overlap it; `end` for a
            marker after the chunk.
    """

    __slots__ = ("aborted", "bounds", "end", "first", "owner", "records")

    def __init__(self, owner: Window, fetched: Fetched) -> None:
        self.owner = owner
        self.first, self.end = fetched.first, fetched.end
        self.records = fetched.records
        self.aborted: list[tuple[int, int, int]] = []
        self.bounds: list[tuple[int, int, int]] = []
        """First offset, last offset and end position of each batch."""
        pending = sorted(fetched.aborted, key=lambda transaction: transaction[1])
        begin = 0
        for base, last, end in measure_batches(fetched.records):
            self.bounds.append((base, last, end))
            if pending and fetched.records[begin + _ATTRIBUTES_AT] & _CONTROL:
                producer_id, _ = producer_at(fetched.records, begin)
                ended = next((t for t in pending if t[0] == producer_id and t[1] <= base), None)
                if ended is not None:
                    pending.remove(ended)
                    self.aborted.append((*ended, base))
            begin = end
        self.aborted += [(*each, self.end) for each in pending]


class Budget:
    """Shared memory limit of all windows, with least-recently-used eviction.

    Attributes:
        used: cached bytes.
        taken: total bytes added.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = self.taken = 0
        self._chunks: OrderedDict[Chunk, None] = OrderedDict()

    def add(self, chunk: Chunk) -> None:
        """Add a chunk, evicting others as needed."""
        self._chunks[chunk] = None
        self.used += len(chunk.records)
        self.taken += len(chunk.records)
        while self.used > self.max_bytes and len(self._chunks) > 1:
            oldest = next(iter(self._chunks))
            oldest.owner.drop(oldest)

    def use(self, chunk: Chunk) -> None:
        """Mark a chunk as recently used."""
        self._chunks.move_to_end(chunk)

    def remove(self, chunk: Chunk) -> None:
        """Remove a chunk that was dropped."""
        if self._chunks.pop(chunk, chunk) is None:
            self.used -= len(chunk.records)


class _Part(NamedTuple):
    """Consecutive batches of a chunk."""

    chunk: Chunk
    begin: int
    end: int
    batches: list[tuple[int, int]]

    @property
    def records(self) -> bytes:
        whole = self.end - self.begin == len(self.chunk.records)
        return self.chunk.records if whole else self.chunk.records[self.begin : self.end]


class Window:
    """Cached batches of one partition, possibly with gaps."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._firsts: list[int] = []
        self._chunks: dict[int, Chunk] = {}

    def add(self, fetched: Fetched) -> None:
        """Cache the result of a fetch."""
        if fetched.end <= fetched.first:
            return
        before = self._chunks.get(fetched.first)
        if before is not None:
            self.drop(before)
        chunk = Chunk(self, fetched)
        insort(self._firsts, chunk.first)
        self._chunks[chunk.first] = chunk
        self._budget.add(chunk)

    def drop(self, chunk: Chunk) -> None:
        """Drop a chunk."""
        if self._chunks.get(chunk.first) is chunk:
            del self._chunks[chunk.first]
            self._firsts.remove(chunk.first)
            self._budget.remove(chunk)

    def clear(self) -> None:
        """Drop all chunks."""
        for chunk in list(self._chunks.values()):
            self.drop(chunk)

    @property
    def size_bytes(self) -> int:
        """Number of cached bytes."""
        return sum(len(chunk.records) for chunk in self._chunks.values())

    def find(self, offset: int) -> Chunk | None:
        """Return the chunk that contains an offset."""
        index = bisect_right(self._firsts, offset) - 1
        if index < 0:
            return None
        chunk = self._chunks[self._firsts[index]]
        return chunk if offset < chunk.end else None

    def bytes_from(self, offset: int) -> int:
        """Return the number of contiguous cached bytes from an offset on, in whole chunks."""
        size = 0
        while (chunk := self.find(offset)) is not None:
            size += len(chunk.records)
            offset = chunk.end
        return size

    def read(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice | None:
        """Read as `Log.read` does, up to a `limit`; None if the batch at or after `offset` is not cached."""
        parts, kept = self._select(offset, max_bytes, **spec)
        if not parts:
            return Slice(b"", []) if kept else None
        for part in parts:
            self._budget.use(part.chunk)
        records = parts[0].records if len(parts) == 1 else b"".join(part.records for part in parts)
        return Slice(records, [batch for part in parts for batch in part.batches])

    def readable_bytes(self, offset: int, max_bytes: int, *, limit: int) -> int | None:
        """Return how many bytes `read` would return; None if the cache ends before that is known."""
        parts, kept = self._select(offset, max_bytes, limit)
        return sum(part.end - part.begin for part in parts) if kept else None

    def _select(
        self,
        offset: int,
        max_bytes: int,
        limit: int | None = None,
        at_least_one: bool = True,
        max_records: int = ANY_RECORDS,
    ) -> tuple[list[_Part], bool]:
        """Return the batches to read, and whether they are complete."""
        assert limit is not None
        parts: list[_Part] = []
        size, last_wanted = 0, offset + max_records - 1
        while offset < limit:
            chunk = self.find(offset)
            if chunk is None:
                return parts, False
            index = bisect_left(chunk.bounds, offset, key=_last_offset)
            begin = end = chunk.bounds[index - 1][2] if index else 0
            taken: list[tuple[int, int]] = []
            full = False
            for base, last, position in chunk.bounds[index:]:
                first = at_least_one and not parts and not taken
                full = last >= limit or (size + position - begin > max_bytes and not first)
                if full:
                    break
                taken.append((base, last))
                end = position
                full = last >= last_wanted
                if full:
                    break
            if taken:
                parts.append(_Part(chunk, begin, end, taken))
                size += end - begin
            if full:
                break
            offset = chunk.end
        return parts, True

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return aborted transactions that overlap the cached part of `[first, end)`, ordered by offset.

        Earlier ones are excluded: their producers may have committed later transactions.
        """
        found: dict[tuple[int, int], None] = {}
        # a chunk's first batch may start before the fetch offset
        for index in range(max(0, bisect_right(self._firsts, first) - 1), bisect_left(self._firsts, end)):
            for producer_id, begun, marker in self._chunks[self._firsts[index]].aborted:
                if marker >= first and begun < end:
                    found[producer_id, begun] = None
        return list(found)


def _last_offset(bound: tuple[int, int, int]) -> int:
    return bound[1]
