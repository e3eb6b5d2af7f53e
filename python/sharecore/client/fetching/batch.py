"""Records returned by a poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, overload

from sharecore._core import Record
from sharecore.client.fetching.lease import Lease


class Part(NamedTuple):
    """Positions `low` up to `high` of a lease."""

    lease: Lease
    low: int
    high: int


class Batch(Sequence[Record]):
    """Records returned by one poll, in offset order per share partition; immutable.

    Acknowledging a batch as a whole is far faster than record by record.
    """

    __slots__ = ("_records", "parts")

    def __init__(self, records: list[Record], parts: tuple[Part, ...]) -> None:
        self._records = records
        self.parts = parts

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"Batch({len(self._records)} records)"


def batch_of(records: list[Record]) -> Batch:
    """Return a batch of exactly these records, in order."""
    return Batch(
        records,
        tuple(Part(run[0].lease, run[0].position, run[-1].position + 1) for run in runs_of(records)),
    )


def runs_of(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Split records into runs of neighboring positions of one lease."""
    run: list[Record] = []
    for record in records:
        if run and (record.lease is not run[-1].lease or record.position != run[-1].position + 1):
            yield run
            run = []
        run.append(record)
    if run:
        yield run


def parts_of(records: Record | Iterable[Record]) -> Iterable[Part]:
    """Return the parts of leases covered by a record, several, or a batch."""
    if isinstance(records, Batch):
        return records.parts
    if isinstance(records, Record):
        return (Part(records.lease, records.position, records.position + 1),)
    return [
        Part(lease, record.position, record.position + 1)
        for lease, group in groupby(records, key=lambda record: record.lease)
        for record in group
    ]


def work_on(parts: Iterable[Part]) -> None:
    """Mark parts as in progress: the application may poll before it acknowledges them."""
    for lease, low, high in parts:
        lease.working.update(range(low, high))
