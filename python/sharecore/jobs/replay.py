"""A trace of operations through the engine, with other limits than it was recorded with."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sharecore._core import Partition, Write
from sharecore.errors import KafkaError
from sharecore.jobs.changes import ARCHIVED
from sharecore.jobs.load import Outcome, Sample
from sharecore.trace import operation as ops
from sharecore.trace.operation import TraceError

ACCEPT = 1
LIMITS = ("max_delivery_count", "max_inflight", "lock_ms")
"""What may be set differently from the trace's `init`."""


def replay(lines: Iterable[str], limits: Mapping[str, int] | None = None) -> Outcome:
    """Replays operations in the format of `sharecore.trace`; each write is committed at once.

    Time passes with `advance`. A record arrives when an `acquire` first names it; its latency ends when it is
    accepted. Several `init` operations are as many share partitions one after the other.

    Args:
        limits: by the names in LIMITS, instead of what `init` says.

    Raises:
        TraceError: a line that is no operation, or one that holds or fails writes.
    """
    run = _Replay(dict(limits or {}))
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            run.apply(ops.parse(json.loads(line)))
        except (TraceError, ValueError, AttributeError) as error:
            raise TraceError(f"line {number}: {error}") from error
    return run.finish()


class _Replay:
    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._partition: Partition | None = None
        self._out = Outcome()
        self._now = 0
        self._leased = 0
        self._leased_area = 0.0
        self._latencies = array("d")
        self._arrived: dict[int, int] = {}
        self._end = 0

    def apply(self, operation: ops.Operation) -> None:
        self._out.operations += 1
        if isinstance(operation, ops.Init):
            self._init(operation)
            return
        partition = self._partition
        if partition is None:
            raise TraceError("a trace begins with init")
        match operation:
            case ops.Acquire():
                self._acquire(partition, operation)
            case ops.Acknowledge():
                self._acknowledge(partition, operation)
            case ops.Release(member):
                self._commit(partition, partition.release(self._now, member))
            case ops.Advance(ms):
                self._advance(partition, ms)
            case ops.MoveLogStart(offset):
                partition.move_log_start(self._now, offset)
            case ops.Archive(first, last):
                partition.archive(self._now, first, last)
            case ops.Configure():
                replace(operation, **dict.fromkeys(self._limits, None)).apply(partition)
            case _:
                raise TraceError(
                    f"a replay commits each write at once: no {type(operation).__name__} operations"
                )

    def finish(self) -> Outcome:
        out = self._out
        self._forget()
        out.reckon(self._latencies)
        out.simulated_s = self._now / 1000
        if self._now:
            out.throughput = out.accepted / out.simulated_s
            out.leased_mean = self._leased_area / self._now
        return out

    def _init(self, init: ops.Init) -> None:
        self._forget()
        recorded = {name: getattr(init, name) for name in LIMITS}
        try:
            self._partition = Partition(
                init.start_offset,
                init.state_batches,
                renew_enabled=init.renew_enabled,
                **(recorded | dict(self._limits)),
            )
        except (KafkaError, ValueError) as error:
            raise TraceError(f"a partition that cannot be: {error}") from error
        self._end = init.start_offset

    def _forget(self) -> None:
        """End the share partition, leaving its pending records unfinished."""
        self._out.unfinished += len(self._arrived)
        self._arrived = {}
        self._leased = 0

    def _acquire(self, partition: Partition, operation: ops.Acquire) -> None:
        fetch_offset = operation.fetch_offset
        for first, last in operation.batches:
            for offset in range(max(first, self._end), last + 1):
                self._arrived[offset] = self._now
                self._out.arrived += 1
            self._end = max(self._end, last + 1)
        acquired = partition.acquire(
            self._now,
            operation.member,
            operation.batches,
            fetch_offset=partition.next_fetch_offset if fetch_offset is None else fetch_offset,
            max_fetch_records=operation.max_fetch_records,
            batch_size=operation.batch_size,
            record_limit=operation.record_limit,
        )
        out = self._out
        for first, last, count in acquired:
            size = last - first + 1
            out.deliveries += size
            out.redeliveries += size if count > 1 else 0
            self._leased += size
        if acquired:
            out.inflight_max = max(out.inflight_max, partition.end_offset - partition.start_offset + 1)

    def _acknowledge(self, partition: Partition, operation: ops.Acknowledge) -> None:
        try:
            write = partition.acknowledge(self._now, operation.member, operation.batches)
        except KafkaError:
            self._out.refused += sum(last - first + 1 for first, last, _ in operation.batches)
            return
        self._commit(partition, write)
        for first, last, types in operation.batches:
            for offset in range(first, last + 1):
                if types[0 if len(types) == 1 else offset - first] == ACCEPT:
                    arrived = self._arrived.pop(offset, None)
                    if arrived is not None:
                        self._out.accepted += 1
                        self._latencies.append(self._now - arrived)

    def _advance(self, partition: Partition, ms: int) -> None:
        self._leased_area += self._leased * ms
        self._now += ms
        write = partition.advance(self._now)
        if write is not None:
            self._out.lock_timeouts += sum(last - first + 1 for first, last, _, _ in write.batches())
        self._commit(partition, write)
        self._out.samples.append(
            Sample(self._now / 1000, self._out.arrived, self._out.accepted, self._leased, len(self._arrived))
        )

    def _commit(self, partition: Partition, write: Write | None) -> None:
        if write is None:
            return
        for first, last, state, _ in write.batches():
            self._leased -= last - first + 1
            if state == ARCHIVED:
                for offset in range(first, last + 1):
                    self._out.archived += self._arrived.pop(offset, None) is not None
        partition.commit(write.id, self._now)
