"""One operation as the reference saw it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from sharecore.reference import ACQUIRED, ARCHIVING, Partition
from sharecore.trace.driver import Driver
from sharecore.trace.engines import engine

Operation = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the reference knows between two operations and no result shows.

    Attributes:
        start_offset: -1 when there is no partition yet.
        held_below: a record below the start offset is leased still, or waits for its dead letter.
        offsets: every offset in flight, those below the start offset included.
        next_deadline_ms: when the next lock runs out.
    """

    start_offset: int = -1
    held_below: bool = False
    offsets: frozenset[int] = frozenset()
    next_deadline_ms: int | None = None

    @property
    def start_in_gap(self) -> bool:
        """Records are known below the start offset, none at it."""
        return self.start_offset not in self.offsets and any(o < self.start_offset for o in self.offsets)

    @classmethod
    def of(cls, driver: Driver) -> Hidden:
        if not driver.started:
            return cls()
        partition = cast(Partition, driver.partition)
        start = partition.start_offset
        records = list(partition.records())
        return cls(
            start,
            any(o < start and (r.state in (ACQUIRED, ARCHIVING) or r.before is not None) for o, r in records),
            frozenset(o for o, _ in records),
            partition.next_deadline_ms,
        )


@dataclass(frozen=True, slots=True)
class Step:
    operation: Operation
    result: Result
    before: Hidden
    after: Hidden


class Recorder:
    """A driver of the reference that keeps the steps."""

    def __init__(self) -> None:
        self.driver = Driver(engine("reference"))
        self._hidden = Hidden()

    def take(self, operation: Operation) -> Step:
        """Apply one operation."""
        result = self.driver.apply(operation)
        before, self._hidden = self._hidden, Hidden.of(self.driver)
        return Step(operation, result, before, self._hidden)


def replay(operations: Iterable[Operation]) -> list[Step]:
    """Return the reference's answers to a trace."""
    recorder = Recorder()
    return [recorder.take(operation) for operation in operations]
