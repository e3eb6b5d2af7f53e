"""A partition's log as a generator needs it: which record batches a fetch returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

RecordBatch = tuple[int, int]


@dataclass(slots=True)
class Log:
    """Record batches that grow at the end, lose members to compaction and their head to retention."""

    random: Random
    size_max: int
    hole_chance: float
    first: int = 0
    batches: list[RecordBatch] = field(default_factory=list)
    end: int = 0

    def __post_init__(self) -> None:
        self.end = self.first

    def read(self, offset: int, count: int) -> list[RecordBatch]:
        """Up to `count` batches from the one that holds `offset` on; the log grows when it is too short."""
        found = [batch for batch in self.batches if batch[1] >= offset][:count]
        while len(found) < count:
            self._append(offset)
            if self.batches[-1][1] >= offset:
                found.append(self.batches[-1])
        return found

    def compact(self) -> None:
        """Drop a batch or two."""
        for _ in range(self.random.randint(1, 2)):
            if self.batches:
                self.batches.pop(self.random.randrange(len(self.batches)))

    def _append(self, offset: int) -> None:
        if offset - self.end > 10 * self.size_max:
            self.end = offset - self.random.randrange(self.size_max)
        if self.random.random() < self.hole_chance:
            self.end += self.random.randint(1, max(2, self.size_max // 2))
        size = 1 if self.random.random() < 0.2 else self.random.randint(1, self.size_max)
        self.batches.append((self.end, self.end + size - 1))
        self.end += size
