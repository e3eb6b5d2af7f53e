"""What a topic holds: keys and times of its records, by their numbers."""

from __future__ import annotations

import random
from array import array
from bisect import bisect
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

RECORD_BYTES = 100
SEED = 43


@dataclass(frozen=True)
class Load:
    """Records that are the same for every subject.

    Args:
        name: of the topic.
        keys: numbers of keys, by record.
        rate: records a second; 0 for all at once.
        due_s: delivery times, by record, in seconds from when the load is written; empty for none.
        codec: how producers compress.
        batch: records a batch at most; 0 for batches of 16 KB, as Java's producer makes them by default.
        topics: how many topics share the records, one stretch each.
        partitions: of each topic.
    """

    name: str
    keys: array[int]
    rate: int = 0
    due_s: array[float] = field(default_factory=lambda: array("d"))
    codec: str = "none"
    batch: int = 0
    topics: int = 1
    partitions: int = 4

    @property
    def count(self) -> int:
        return len(self.keys)

    def topic_of(self, record: int) -> int:
        """Return the number of its topic."""
        return record * self.topics // self.count

    def write(self, path: Path, began_ns: int) -> None:
        """Write two numbers of 64 bits a record, in this machine's order: its key, and when it is due.

        Args:
            began_ns: what delivery times count from.
        """
        rows = array("q", bytes(16 * self.count))
        rows[::2] = self.keys
        if self.due_s:
            rows[1::2] = array("q", (began_ns // 1_000_000 + int(due * 1000) for due in self.due_s))
        path.write_bytes(rows.tobytes())


def value(record: int) -> bytes:
    """Return the record's number, filled up."""
    return record.to_bytes(8, "big") + bytes(RECORD_BYTES - 8)


def uniform(count: int, keys: int) -> array[int]:
    """Return keys, each as likely as the others."""
    chance = random.Random(SEED)
    return array("q", (chance.randrange(keys) for _ in range(count)))


def half_hot(count: int, keys: int) -> array[int]:
    """Return keys of which every second one is 0."""
    chance = random.Random(SEED)
    return array("q", (number % 2 and chance.randrange(1, keys) for number in range(count)))


def zipf(count: int, keys: int, exponent: float) -> array[int]:
    """Return keys that are as frequent as their rank to the power of `-exponent`."""
    chance = random.Random(SEED)
    bounds = list(accumulate(rank**-exponent for rank in range(1, keys + 1)))
    return array("q", (bisect(bounds, chance.random() * bounds[-1]) for _ in range(count)))
