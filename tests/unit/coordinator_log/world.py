"""Time and a coordinator's topic in memory, stepped manually."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record, WriteTicket
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import ScannedBatch

GIVEN_UP_MS = 2_000
"""A write that keeps failing is abandoned earlier."""


class Timer:
    """A pending callback."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class World:
    """Clock and timers; time only passes in `run`."""

    def __init__(self) -> None:
        self.ms = 1_000_000.0
        self.wall_ahead_ms = 0
        self._order = count()
        self._timers: list[tuple[float, int, Timer]] = []

    def now_ms(self) -> int:
        return int(self.ms) + self.wall_ahead_ms

    def monotonic_ms(self) -> int:
        return int(self.ms)

    def call_soon(self, callback: Callable[[], None], /) -> Timer:
        return self.call_later(0, callback)

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (self.ms + delay * 1000, next(self._order), timer))
        return timer

    def crash(self) -> None:
        """Drop all waiting callers."""
        self._timers.clear()

    def run(self, ms: float = 0) -> None:
        """Let time pass, and run due timers in order."""
        until = self.ms + ms
        while self._timers and self._timers[0][0] <= until:
            at, _, timer = heapq.heappop(self._timers)
            self.ms = max(self.ms, at)
            if timer.callback is not None:
                timer.callback()
        self.ms = until


class Ticket:
    """A completed write."""

    def __init__(self, error: KafkaError | None) -> None:
        self.error = error

    def add_done_callback(self, callback: Callable[[WriteTicket], None], /) -> None:
        callback(self)


class HeldTicket(Ticket):
    """A write that ends when the test says so."""

    def __init__(self, batch: ScannedBatch) -> None:
        super().__init__(None)
        self.batch = batch
        self.callbacks: list[Callable[[WriteTicket], None]] = []

    def add_done_callback(self, callback: Callable[[WriteTicket], None], /) -> None:
        self.callbacks.append(callback)

    def end(self, error: KafkaError | None) -> None:
        self.error = error
        for callback in self.callbacks:
            callback(self)


class Appended(NamedTuple):
    ticket: Ticket
    base_offset: int = 0


class MemoryLog:
    """One partition of a coordinator's topic; writes are durable at once, fail if `failing`, or wait for
    `release` if `holding`.
    """

    def __init__(self, topic: str = "__consumer_offsets", index: int = 0) -> None:
        self.topic = topic
        self.index = index
        self.start_offset = 0
        self.failing = self.holding = False
        self.held: list[HeldTicket] = []
        self.batches: list[ScannedBatch] = []

    @property
    def end_offset(self) -> int:
        return self.batches[-1].records[-1][0] + 1 if self.batches else self.start_offset

    @property
    def high_watermark(self) -> int:
        return self.end_offset

    @property
    def last_stable_offset(self) -> int:
        opened: dict[int, int] = {}
        for batch in self.batches:
            if batch.is_control:
                opened.pop(batch.producer_id, None)
            elif batch.producer_id >= 0:
                opened.setdefault(batch.producer_id, batch.records[0][0])
        return min(opened.values(), default=self.end_offset)

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        if self.failing:
            return Appended(Ticket(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)))
        base = self.held[-1].batch.records[-1][0] + 1 if self.held else self.end_offset
        scanned = [(base + index, now_ms, key, value) for index, (key, value) in enumerate(records)]
        batch = ScannedBatch(producer[0] if producer else -1, False, scanned)
        if self.holding:
            self.held.append(HeldTicket(batch))
            return Appended(self.held[-1], base)
        self.batches.append(batch)
        return Appended(Ticket(None), base)

    def release(self, error: KafkaError | None = None) -> None:
        """Complete the held writes, successfully or not."""
        held, self.held, self.holding = self.held, [], False
        if error is None:
            self.batches += [ticket.batch for ticket in held]
        for ticket in held:
            ticket.end(error)

    def hurry(self) -> None: ...

    def append_marker(self, producer_id: int, *, commit: bool) -> None:
        marker = (self.end_offset, 0, bytes([0, 0, 0, commit]), bytes(6))
        self.batches.append(ScannedBatch(producer_id, True, [marker]))

    def delete_records(self, before_offset: int, /) -> Ticket:
        self.batches = [batch for batch in self.batches if batch.records[0][0] >= before_offset]
        self.start_offset = before_offset
        return Ticket(None)

    def scan(self, offset: int, /) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        return (record for batch in self.scan_batches(offset) for record in batch.records)

    def scan_batches(self, offset: int, /) -> Iterator[ScannedBatch]:
        return (batch for batch in list(self.batches) if batch.records[0][0] >= offset)


def record_log(
    world: World,
    logs: list[MemoryLog],
    *,
    attempts_max: int = 5,
    owns: Callable[[int], bool] = lambda partition: True,
) -> CoordinatorRuntime:
    """Return the topic of these partitions."""
    return CoordinatorRuntime(
        lambda: logs,
        world,
        world,
        attempts_max=attempts_max,
        owner_check=lambda partition: own(owns(partition)),
    )


def own(owned: bool) -> None:
    if not owned:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
