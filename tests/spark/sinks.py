"""Sinks that tell afterwards which rows they were given, and how often."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame

Place = tuple[int, int]
"""Partition and offset of a row."""


class Verdict(NamedTuple):
    """Rows that never came, and rows that came twice.

    Twice with a sink that replaces a batch that it is given again, and with one that appends.
    """

    lost: int
    twice_idempotent: int
    twice_append: int


class Sinks:
    """One directory that every row of a batch is written to twice: by the batch's number, and appended."""

    def __init__(self, home: Path) -> None:
        self._by_number, self._appended = home / "by-number", home / "appended"
        for path in (self._by_number, self._appended):
            path.mkdir(parents=True, exist_ok=True)

    def write(self, batch: DataFrame, number: int) -> list[Place]:
        """Write a batch; return its rows."""
        rows = [(row.partition, row.offset) for row in batch.select("partition", "offset").collect()]
        text = json.dumps(rows)
        (self._by_number / str(number)).write_text(text)
        (self._appended / uuid.uuid4().hex).write_text(text)
        return rows

    def seen(self) -> Counter[Place]:
        """How often each row was appended."""
        return _count(self._appended)

    def rows_without(self, commits: Path) -> int:
        """How many rows batches have that were written, and of which a checkpoint holds no commit."""
        open_ = [path for path in self._by_number.iterdir() if not (commits / path.name).exists()]
        return sum(len(json.loads(path.read_text())) for path in open_)

    def verdict(self, sent: int, partitions: int, elsewhere: Counter[Place] | None = None) -> Verdict:
        """What was made of `sent` records that lie in `partitions` in turn.

        Args:
            elsewhere: rows that another member of the group has processed.
        """
        others = elsewhere or Counter()
        every = {(number % partitions, number // partitions) for number in range(sent)}
        once, appended = _count(self._by_number) + others, _count(self._appended) + others
        assert set(appended) <= every, "rows that were never sent"
        return Verdict(
            len(every - set(once)),
            sum(count - 1 for count in once.values()),
            sum(count - 1 for count in appended.values()),
        )


def _count(directory: Path) -> Counter[Place]:
    return Counter(tuple(row) for path in directory.iterdir() for row in json.loads(path.read_text()))
