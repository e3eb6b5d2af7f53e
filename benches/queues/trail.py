"""What clients wrote down of every delivery, and what of that breaks the order that a shape asks for.

A trail is a file of rows of four numbers of 64 bits: the number of the record, when its work began and ended
(nanoseconds since the epoch; all clocks are one machine's), and which delivery it was.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

COLUMNS = 4
ERRORS_MAX = 5


class Delivery(NamedTuple):
    """A record that a worker got."""

    began_ns: int
    record: int
    ended_ns: int
    delivery: int


class Trail:
    """The deliveries of one run, by when their work began.

    Args:
        path: a file that a client wrote.
    """

    def __init__(self, path: Path) -> None:
        numbers = array("q")
        numbers.frombytes(path.read_bytes())
        if sys.byteorder == "little":
            numbers.byteswap()
        rows = zip(*(numbers[column::COLUMNS] for column in range(COLUMNS)), strict=True)
        self.deliveries = sorted(
            Delivery(began, record, ended, delivery) for record, began, ended, delivery in rows
        )
        if not self.deliveries:
            raise RuntimeError(f"{path}: no record was delivered")

    @property
    def began_ns(self) -> int:
        return self.deliveries[0].began_ns

    @property
    def ended_ns(self) -> int:
        return max(each.ended_ns for each in self.deliveries)

    @property
    def seconds(self) -> float:
        """From the first record until the last one was worked off."""
        return (self.ended_ns - self.began_ns) / 1e9

    def records(self) -> set[int]:
        return {each.record for each in self.deliveries}

    def missing(self, wanted: Sequence[int] | range) -> str | None:
        """Return what is wrong where a record was never delivered."""
        left = set(wanted) - self.records()
        return f"{len(left)} records were not delivered, the first is {min(left)}" if left else None

    def out_of_order(self, keys: Sequence[int]) -> Iterator[str]:
        """Return deliveries before an earlier one of their key has ended, or after one of a later record.

        Args:
            keys: of the records, by their numbers.
        """
        before: dict[int, Delivery] = {}
        for came in self.deliveries:
            key = keys[came.record]
            last = before.get(key)
            if last is not None:
                if came.record < last.record:
                    yield f"key {key}: {came} came after {last}"
                if came.began_ns < last.ended_ns:
                    yield f"key {key}: {came} began while {last} was worked on"
            if last is None or came.record >= last.record:
                before[key] = came

    def lateness_ms(self, waits_s: Sequence[float]) -> list[float]:
        """Return how long after its back-off each delivery but the first ones came.

        Args:
            waits_s: before the second delivery, the third, and so on.
        """
        ended: dict[int, int] = {}
        late = []
        for came in self.deliveries:
            if came.delivery > 1 and came.record in ended:
                due = ended[came.record] + waits_s[came.delivery - 2] * 1e9
                late.append((came.began_ns - due) / 1e6)
            ended[came.record] = came.ended_ns
        return late


def first_errors(found: Iterator[str]) -> list[str]:
    """Return the first few of what may be a million."""
    return [text for text, _ in zip(found, range(ERRORS_MAX), strict=False)]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]
