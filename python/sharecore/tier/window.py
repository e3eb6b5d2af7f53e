"""Record batches of partitions upstream, kept for a while as the bytes that they are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from typing import NamedTuple

from sharecore.storage import Slice
from sharecore.tier.claims import measure_batches, producer_at
from sharecore.upstream import Fetched

_ATTRIBUTES_AT = 22
"""Of the low byte of a batch's attributes."""
_CONTROL = 1 << 5


class Chunk:
    """What one fetch brought, by batch.

    Attributes:
        first: the offset from which was fetched; there is no record between it and the first batch.
        end: the offset behind the last batch.
        aborted: producer and first offset of aborted transactions that reach into it, and the offset of the
            marker that ends them; `end` where that is behind the chunk.
    """

    __slots__ = ("aborted", "bounds", "end", "first", "owner", "records")

    def __init__(self, owner: Window, fetched: Fetched) -> None:
        self.owner = owner
        self.first, self.end = fetched.first, fetched.end
        self.records = fetched.records
        self.aborted: list[tuple[int, int, int]] = []
        self.bounds: list[tuple[int, int, int]] = []
        """First offset and last offset of each batch, and where its bytes end."""
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
    """How many bytes all windows together keep; what was not used for longest goes first.

    Attributes:
        used: bytes that are kept.
        taken: bytes that were taken in so far.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = self.taken = 0
        self._chunks: OrderedDict[Chunk, None] = OrderedDict()

    def add(self, chunk: Chunk) -> None:
        """Take a chunk in, and let others go for it."""
        self._chunks[chunk] = None
        self.used += len(chunk.records)
        self.taken += len(chunk.records)
        while self.used > self.max_bytes and len(self._chunks) > 1:
            oldest = next(iter(self._chunks))
            oldest.owner.drop(oldest)

    def use(self, chunk: Chunk) -> None:
        """A chunk was read."""
        self._chunks.move_to_end(chunk)

    def remove(self, chunk: Chunk) -> None:
        """A chunk is not kept any more."""
        if self._chunks.pop(chunk, chunk) is None:
            self.used -= len(chunk.records)


class _Part(NamedTuple):
    """Batches of a chunk, one behind the other."""

    chunk: Chunk
    begin: int
    end: int
    batches: list[tuple[int, int]]

    @property
    def records(self) -> bytes:
        whole = self.end - self.begin == len(self.chunk.records)
        return self.chunk.records if whole else self.chunk.records[self.begin : self.end]


class Window:
    """The batches of one partition that are kept, in any number of pieces."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._firsts: list[int] = []
        self._chunks: dict[int, Chunk] = {}

    def add(self, fetched: Fetched) -> None:
        """Keep what a fetch brought."""
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
        """Keep a chunk no longer."""
        if self._chunks.get(chunk.first) is chunk:
            del self._chunks[chunk.first]
            self._firsts.remove(chunk.first)
            self._budget.remove(chunk)

    def clear(self) -> None:
        """Keep nothing."""
        for chunk in list(self._chunks.values()):
            self.drop(chunk)

    @property
    def size_bytes(self) -> int:
        """Bytes that are kept."""
        return sum(len(chunk.records) for chunk in self._chunks.values())

    def find(self, offset: int) -> Chunk | None:
        """Return the chunk that an offset lies in."""
        index = bisect_right(self._firsts, offset) - 1
        if index < 0:
            return None
        chunk = self._chunks[self._firsts[index]]
        return chunk if offset < chunk.end else None

    def bytes_from(self, offset: int) -> int:
        """Bytes that are kept from an offset on, without a hole; those of a chunk count together."""
        size = 0
        while (chunk := self.find(offset)) is not None:
            size += len(chunk.records)
            offset = chunk.end
        return size

    def read(
        self, offset: int, max_bytes: int, *, limit: int, at_least_one: bool, max_records: int
    ) -> Slice | None:
        """As `Log.read`; None where the batch that holds `offset` or follows on it is not kept."""
        parts, kept = self._select(offset, max_bytes, limit, at_least_one, max_records)
        if not parts:
            return Slice(b"", []) if kept else None
        for part in parts:
            self._budget.use(part.chunk)
        records = parts[0].records if len(parts) == 1 else b"".join(part.records for part in parts)
        return Slice(records, [batch for part in parts for batch in part.batches])

    def readable_bytes(self, offset: int, max_bytes: int, *, limit: int) -> int | None:
        """How many bytes `read` would return; None where what is kept ends before that is known."""
        parts, kept = self._select(offset, max_bytes, limit, True, (1 << 63) - 1 - offset)
        return sum(part.end - part.begin for part in parts) if kept else None

    def _select(
        self, offset: int, max_bytes: int, limit: int, at_least_one: bool, max_records: int
    ) -> tuple[list[_Part], bool]:
        """Return the batches to read, and whether there is nothing more to read than these."""
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
        """Aborted transactions that reach into what is kept of `[first, end)`, by the order of their offsets.

        One that has ended before is not among them: its producer may have committed another since.
        """
        found: dict[tuple[int, int], None] = {}
        # the first batch of a chunk may begin before the offset that was fetched
        for index in range(max(0, bisect_right(self._firsts, first) - 1), bisect_left(self._firsts, end)):
            for producer_id, begun, marker in self._chunks[self._firsts[index]].aborted:
                if marker >= first and begun < end:
                    found[producer_id, begun] = None
        return list(found)


def _last_offset(bound: tuple[int, int, int]) -> int:
    return bound[1]
