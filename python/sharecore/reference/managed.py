"""A share partition whose available records may have to wait."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from sharecore.reference.partition import Partition
from sharecore.reference.record import AVAILABLE, Record, StateBatch, Write


class Rules(Protocol):
    """A group's settings for redelivery; `sharecore._core.Rules` is one."""

    @property
    def on_release(self) -> bool: ...
    @property
    def on_timeout(self) -> bool: ...
    @property
    def max_waiting(self) -> int: ...
    @property
    def ordering(self) -> str: ...
    @property
    def run_max(self) -> int: ...
    def wait_ms(self, first: int, delivery_count: int) -> int: ...


class ManagedPartition(Partition):
    """A partition with rules: each waiting record knows the end of its wait.

    Args:
        rules: the rules for retries.
        now_ms: loaded records that were delivered before back off as if released now.
    """

    def __init__(
        self,
        start_offset: int = 0,
        state_batches: Iterable[StateBatch] = (),
        *,
        rules: Rules,
        now_ms: int = 0,
        **limits: Any,
    ) -> None:
        loaded = sorted(state_batches)
        super().__init__(start_offset, loaded, **limits)
        self._rules = rules
        self._unwaited: set[int] = set()
        """Open writes whose released records do not back off: those of closed sessions."""
        for first, last, *_ in loaded:
            self._hold_back(range(first, last + 1), now_ms)

    def acquire(
        self,
        now_ms: int,
        member: str,
        batches: Sequence[tuple[int, int]],
        fetch_offset: int,
        max_fetch_records: int = 500,
        batch_size: int = 500,
        record_limit: bool = False,
    ) -> list[tuple[int, int, int]]:
        exact = record_limit or self._rules.ordering != "none"
        return super().acquire(
            now_ms, member, batches, fetch_offset, max_fetch_records, batch_size, record_limit=exact
        )

    def release(self, now_ms: int, member: str) -> Write | None:
        write = super().release(now_ms, member)
        if write is not None:
            self._unwaited.add(write.id)
        return write

    def advance(self, now_ms: int) -> Write | None:
        for _, record in self._window.all():
            if record.waits_until_ms is not None and record.waits_until_ms <= now_ms:
                record.waits_until_ms = None
        write = super().advance(now_ms)
        if write is not None and self._rules.on_timeout:
            self._hold_back_batches(write.batches(), now_ms)
        return write

    def commit(self, write_id: int, now_ms: int) -> None:
        write = self._open_writes.get(write_id)
        waits = write is not None and not write.expiry and write_id not in self._unwaited
        released = self._batches_of(write_id)
        super().commit(write_id, now_ms)
        self._unwaited.discard(write_id)
        if waits and self._rules.on_release:
            self._hold_back_batches(released, now_ms)

    def rollback(self, write_id: int, now_ms: int) -> None:
        write = self._open_writes.get(write_id)
        begun = self._batches_of(write_id)
        super().rollback(write_id, now_ms)
        self._unwaited.discard(write_id)
        if write is not None and not write.expiry and self._rules.on_timeout:
            for first, last, *_ in begun:
                self._hold_back(range(first, last + 1), now_ms)

    @property
    def can_acquire(self) -> bool:
        """As without rules, but only acquired records count, and the number of waiting ones is limited."""
        if self._rules.ordering == "partition" and not self._is_first_in_line(self._window.next_fetch_offset):
            return False
        return self._leased < self._max_inflight and (
            self._window.next_fetch_offset != self._window.end_offset + 1 or self._may_admit
        )

    @property
    def next_time_ms(self) -> int | None:
        """When `advance` is due next."""
        times = [r.waits_until_ms for _, r in self._window.all() if r.waits_until_ms is not None]
        deadline_ms = self.next_deadline_ms
        return min(times if deadline_ms is None else [*times, deadline_ms], default=None)

    def waiting(self) -> tuple[int, bool]:
        """How many records wait, and whether waiting records fill the window."""
        waiting = sum(record.is_free and record.waits for _, record in self._window.all())
        return waiting, not self._may_admit

    def _limit(self, fetch_offset: int, wanted: int) -> tuple[int, int]:
        room = min(wanted, self._max_inflight - self._leased)
        reach = sys.maxsize
        if self._rules.ordering == "partition":
            if not self._is_first_in_line(fetch_offset):
                return 0, 0
            room, reach = min(room, self._rules.run_max), self._last_in_line
        if self._may_admit:
            return room, reach
        end_offset = self._window.end_offset
        return (room, min(reach, end_offset)) if fetch_offset <= end_offset else (0, 0)

    def _is_first_in_line(self, fetch_offset: int) -> bool:
        """Return whether a fetch from there gets the first unfinished record: no record is held, and that one
        does not wait.
        """
        following = self._window.next_fetch_offset
        return not self._leased and fetch_offset <= following <= self._last_in_line

    @property
    def _last_in_line(self) -> int:
        """The last offset before the first record that waits."""
        waiting = (offset for offset, record in self._window.all() if record.is_free and record.waits)
        return min(waiting, default=sys.maxsize) - 1

    @property
    def _leased(self) -> int:
        return sum(bool(record.member) for _, record in self._window.all())

    @property
    def _may_admit(self) -> bool:
        window = self._window
        return window.in_flight - window.delivery_complete_count - self._leased < self._rules.max_waiting

    def _batches_of(self, write_id: int) -> tuple[StateBatch, ...]:
        write = self._open_writes.get(write_id)
        return () if write is None else write.batches

    def _hold_back_batches(self, batches: Iterable[StateBatch], now_ms: int) -> None:
        for first, last, state, _ in batches:
            if state == AVAILABLE:
                self._hold_back(range(first, last + 1), now_ms)

    def _hold_back(self, offsets: range, now_ms: int) -> None:
        """Back off released records: neighbors with the same delivery count wait together."""
        first, before = 0, None
        for offset in offsets:
            record: Record | None = self._window.records.get(offset)
            if (
                record is None
                or not record.is_free
                or record.waits_until_ms is not None
                or record.delivery_count == 0
            ):
                before = None
                continue
            if before is None or before.delivery_count != record.delivery_count:
                first = offset
            before = record
            wait_ms = self._rules.wait_ms(first, record.delivery_count)
            if wait_ms > 0:
                record.waits_until_ms = now_ms + wait_ms
