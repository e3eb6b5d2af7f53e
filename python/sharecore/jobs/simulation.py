"""A share partition under load in simulated time, event by event, on the engine of a broker."""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from sharecore._core import Partition, Write
from sharecore.errors import KafkaError
from sharecore.jobs.changes import ARCHIVED
from sharecore.jobs.handling import handling_time
from sharecore.jobs.load import SAMPLES, Load, Outcome, Sample

ACCEPT, RELEASE, RENEW = 1, 2, 4
_FETCH_BATCHES_MAX = 1_000


class _Work(NamedTuple):
    """The records of a member, and its decision on each."""

    member: int
    ranges: list[tuple[int, int, bytes]]
    records: int
    until: float


def simulate(load: Load) -> Outcome:
    """Run a load to its end; the same load gives the same outcome."""
    run = _Simulation(load)
    run.run()
    return run.finish()


class _Simulation:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._partition = Partition(
            max_delivery_count=load.delivery_limit, max_inflight=load.max_record_locks, lock_ms=load.lock_ms
        )
        self._out = Outcome()
        # one generator per question, so that for example more failures do not change the arrivals
        self._arrivals, self._handling, self._failures = (
            random.Random(f"{load.seed} {what}") for what in ("arrivals", "handling", "failures")
        )
        self._draw = handling_time(load.handling)
        self._between_ms = 1000.0 * load.record_batch / load.records_per_s
        self._end_ms = load.duration_s * 1000
        self._idle = deque(range(load.members))
        self._names = [f"member-{number}" for number in range(load.members)]
        self._events: list[tuple[float, int, object]] = []
        self._scheduled = 0
        self._batch_ms = array("d")
        self._latencies = array("d")
        self._now = 0.0
        self._leased = 0
        self._busy_ms = 0.0
        self._leased_area = self._backlog_area = 0.0
        self._next_sample = 0

    def run(self) -> None:
        self._schedule(self._gap(), None)
        while self._events:
            at = self._events[0][0]
            deadline = self._partition.next_deadline_ms
            if deadline is not None and deadline <= at:
                self._move_to(max(self._now, deadline))
                self._expire(deadline)
            else:
                self._move_to(at)
                self._happen(heappop(self._events)[2])
            if self._now > 2 * self._end_ms:
                break
            self._give_out()

    def finish(self) -> Outcome:
        out, load = self._out, self._load
        self._move_to(max(self._now, self._end_ms))
        out.accepted = len(self._latencies)
        out.unfinished = out.arrived - out.accepted - out.archived
        out.reckon(self._latencies)
        out.leased_mean = self._leased_area / self._end_ms
        out.backlog_mean = self._backlog_area / self._end_ms
        out.utilisation = self._busy_ms / (load.members * self._end_ms)
        out.simulated_s = self._now / 1000
        return out

    def _schedule(self, at: float, event: object) -> None:
        self._scheduled += 1
        heappush(self._events, (at, self._scheduled, event))

    def _gap(self) -> float:
        if self._load.arrivals == "constant":
            return self._between_ms
        return self._arrivals.expovariate(1 / self._between_ms)

    def _backlog(self) -> int:
        return self._out.arrived - len(self._latencies) - self._out.archived

    def _move_to(self, at: float) -> None:
        out = self._out
        while self._next_sample <= SAMPLES and self._sample_ms() <= at:
            out.samples.append(
                Sample(
                    self._sample_ms() / 1000, out.arrived, len(self._latencies), self._leased, self._backlog()
                )
            )
            self._next_sample += 1
        counted = min(at, self._end_ms) - min(self._now, self._end_ms)
        self._leased_area += self._leased * counted
        self._backlog_area += self._backlog() * counted
        if self._now < self._end_ms <= at:
            out.throughput = len(self._latencies) / self._load.duration_s
        self._now = at

    def _sample_ms(self) -> float:
        return self._next_sample * self._end_ms / SAMPLES

    def _happen(self, event: object) -> None:
        if event is None:
            self._arrive()
        elif isinstance(event, _Work):
            if event.until > self._now:
                self._renew(event)
            else:
                self._end(event)
        else:
            assert isinstance(event, tuple)
            self._commit(*event)

    def _arrive(self) -> None:
        if self._now < self._end_ms:
            self._batch_ms.append(self._now)
            self._out.arrived += self._load.record_batch
            self._schedule(self._now + self._gap(), None)

    def _give_out(self) -> None:
        """Let idle members fetch, the longest idle first."""
        load, partition = self._load, self._partition
        while self._idle and partition.can_acquire:
            fetch_offset = partition.next_fetch_offset
            if fetch_offset >= self._out.arrived:
                return
            acquired = partition.acquire(
                int(self._now),
                self._names[self._idle[0]],
                self._read(fetch_offset),
                fetch_offset,
                load.max_poll_records,
                load.max_poll_records,
                load.record_limit,
            )
            self._out.operations += 1
            if not acquired:
                return
            self._begin(self._idle.popleft(), acquired)
            self._out.inflight_max = max(
                self._out.inflight_max, partition.end_offset - partition.start_offset + 1
            )

    def _read(self, offset: int) -> list[tuple[int, int]]:
        """Return the record batches from an offset on, about as many as are wanted."""
        size = self._load.record_batch
        first = offset // size
        wanted = -(-self._load.max_poll_records // size)
        last = min(first + min(wanted, _FETCH_BATCHES_MAX), len(self._batch_ms))
        return [(number * size, number * size + size - 1) for number in range(first, last)]

    def _begin(self, member: int, acquired: list[tuple[int, int, int]]) -> None:
        out, took = self._out, 0.0
        failure_rate, fails = self._load.failure_rate, self._failures.random
        ranges, records = [], 0
        for first, last, count in acquired:
            size = last - first + 1
            records += size
            out.redeliveries += size if count > 1 else 0
            for _ in range(size):
                took += self._draw(self._handling)
            if failure_rate:
                types = bytes(RELEASE if fails() < failure_rate else ACCEPT for _ in range(size))
            else:
                types = b"\x01"
            ranges.append((first, last, types))
        out.deliveries += records
        self._leased += records
        # work after the last arrival is not counted, since the members' time after it is not counted either
        self._busy_ms += max(0.0, min(self._now + took, self._end_ms) - self._now)
        work = _Work(member, ranges, records, self._now + took)
        self._schedule(self._first_event(work), work)

    def _first_event(self, work: _Work) -> float:
        half = self._load.lock_ms / 2
        return min(work.until, self._now + half) if self._load.renew else work.until

    def _renew(self, work: _Work) -> None:
        self._out.operations += 1
        try:
            self._partition.acknowledge(
                int(self._now),
                self._names[work.member],
                [(first, last, bytes([RENEW])) for first, last, _ in work.ranges],
            )
        except KafkaError:
            # the lock has expired even so: half a millisecond rounds down to nothing
            self._schedule(work.until, work)
            return
        self._schedule(self._first_event(work), work)

    def _end(self, work: _Work) -> None:
        self._idle.append(work.member)
        self._out.operations += 1
        try:
            write = self._partition.acknowledge(int(self._now), self._names[work.member], work.ranges)
        except KafkaError:
            self._out.refused += work.records
            return
        self._leased -= work.records
        self._persist(write, work)

    def _expire(self, deadline: int) -> None:
        self._out.operations += 1
        write = self._partition.advance(deadline)
        if write is not None:
            expired = sum(last - first + 1 for first, last, _, _ in write.batches())
            self._out.lock_timeouts += expired
            self._leased -= expired
        self._persist(write, None)

    def _persist(self, write: Write | None, work: _Work | None) -> None:
        if self._load.write_ms:
            self._schedule(self._now + self._load.write_ms, (write, work))
        else:
            self._commit(write, work)

    def _commit(self, write: Write | None, work: _Work | None) -> None:
        if write is not None:
            self._out.archived += sum(
                last - first + 1 for first, last, state, _ in write.batches() if state == ARCHIVED
            )
            self._partition.commit(write.id, int(self._now))
        if work is not None:
            self._accept(work.ranges)

    def _accept(self, ranges: Iterable[tuple[int, int, bytes]]) -> None:
        size, arrived, now = self._load.record_batch, self._batch_ms, self._now
        for first, last, types in ranges:
            if types == b"\x01":
                self._latencies.extend(now - arrived[offset // size] for offset in range(first, last + 1))
            else:
                self._latencies.extend(
                    now - arrived[offset // size]
                    for offset, kind in enumerate(types, first)
                    if kind == ACCEPT
                )
